// log.hpp -- log lines for people, on stderr. Programs call log_to_stderr(); until then, and in any other program that
// links our libraries, nothing is written.
//
// Threads: any.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace kvingest {

enum class LogLevel { debug, info, warning, error };

/// From now on lines of `least` and above go to stderr, each with its time (UTC), level and `program`.
void log_to_stderr(std::string_view program, LogLevel least);

void log_line(LogLevel level, std::string_view text);

template <class... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::warning, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace kvingest
