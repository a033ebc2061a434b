// output.hpp -- where a command's results go: a file descriptor, written in large pieces.
//
// A reader that leaves (`kvq scan | head`) is no failure: what is written to it later goes nowhere, and is_wanted()
// tells a long command to end.
//
// Threads: one.
#pragma once

#include <string>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest::query {

class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Append results here.
  [[nodiscard]] std::string& text() noexcept { return text_; }
  /// Writes what is there once it is worth a call. Fails with: no_space, io_error.
  Result<void> flush_some() { return text_.size() < kFlushBytes ? Result<void>() : flush(); }
  Result<void> flush();
  [[nodiscard]] bool is_wanted() const noexcept { return wanted_; }
  [[nodiscard]] bool is_terminal() const noexcept;

 private:
  static constexpr std::size_t kFlushBytes = 64 * 1024;

  int fd_;
  std::string text_;
  bool wanted_ = true;
};

}  // namespace kvingest::query
