// coverage.hpp -- which spans of a series are done: a set of half-open intervals of time.
//
// Threads: a value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/load/time_text.hpp"
#include "kvingest/result.hpp"

namespace kvingest::fetch {

struct Span {
  Instant from = 0;
  Instant to = 0;  ///< Behind the last instant.
  [[nodiscard]] bool is_empty() const noexcept { return from >= to; }
  bool operator==(const Span&) const = default;
};

class Coverage {
 public:
  void add(Span span);
  void clear() { spans_.clear(); }
  /// The parts of `wanted` that are not covered, rising.
  [[nodiscard]] std::vector<Span> holes(Span wanted) const;
  [[nodiscard]] const std::vector<Span>& spans() const noexcept { return spans_; }

  /// "FROM/TO,FROM/TO", nanoseconds. Decoding fails with: corrupt.
  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static Result<Coverage> decode(std::string_view text);

 private:
  std::vector<Span> spans_;  // Rising; no two touch.
};

}  // namespace kvingest::fetch
