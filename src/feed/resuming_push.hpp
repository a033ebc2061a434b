// resuming_push.hpp -- pushes a named source exactly once: after any break it goes on where the server's store says.
//
// Threads: one, and a reader's (answers.hpp).
// Errors:  a broken connection or a server that is away is no error but tried again, until nothing has become durable
//          for `patience`; a refusal that trying again cannot mend is one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "feed/answers.hpp"
#include "feed/sender.hpp"

namespace kvingest::feed {

struct PushPlan {
  Address to;
  std::string source;
  std::string token;  ///< Said with the hello; empty: none.
  /// Opens the lines from the first one; called again for each connection.
  std::function<Result<std::unique_ptr<LineSource>>()> open;
  Pace pace;
  std::chrono::milliseconds patience{60'000};
  std::optional<std::chrono::milliseconds> ack{100};  ///< How often to be told what is durable; nothing: at the end.
  bool latency = false;                               ///< Take samples of the time from intended send to durable.
};

struct PushResult {
  std::uint64_t sent = 0;      ///< Lines given to the peers' kernels, those sent again included.
  std::uint64_t bytes = 0;     ///< Of them.
  std::uint64_t lines = 0;     ///< Of the source, as far as it was read.
  std::uint64_t durable = 0;   ///< Lines of the source that are durable.
  std::uint64_t rejected = 0;  ///< Of those that the last connection sent.
  std::string rejected_lines;  ///< "3,17": the first of them.
  std::uint64_t connections = 0;
  bool complete = false;  ///< Every line of the source is durable.
  std::string trouble;    ///< Why not, or what the last break was.
  LatencySamples latency;
};

/// Pushes until all is durable, an interrupt comes, or it is given up. Fails with: what opening the lines fails with.
Result<PushResult> push_source(const PushPlan& plan, Progress& progress);

}  // namespace kvingest::feed
