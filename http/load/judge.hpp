// judge.hpp -- what an answer is, before anything is decoded: the preset's verdicts in order, then its expectations.
//
// Half of the sources say "slow down" or "no such symbol" with status 200, and some in another format than the data. So
// a status alone is believed only where no verdict says more.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "http/load/outcome.hpp"
#include "http/load/preset.hpp"

namespace kvingest::fetch {

struct Judgement {
  Outcome outcome = Outcome::ok;
  std::string message;  ///< The source's own words where the preset says where they are.
  bool retry = false;
  bool wait_from_header = false;
  std::optional<http::Milliseconds> wait;
  Scope scope = Scope::item;
};

[[nodiscard]] Judgement judge(const Preset& preset, int status, const http::Headers& headers, std::string_view body);

/// The same in the words of the client.
[[nodiscard]] http::Verdict verdict_of(const Judgement& judgement);

}  // namespace kvingest::fetch
