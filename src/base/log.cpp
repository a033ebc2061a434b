#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace kvingest {
namespace {

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance;  // Shared by spdlog's own type; null until a program asks for lines.
  return instance;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void log_to_stderr(std::string_view program, LogLevel least) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto made = std::make_shared<spdlog::logger>(std::string(program), std::move(sink));
  made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %n %l: %v", spdlog::pattern_time_type::utc);
  made->set_level(spdlog_level(least));
  made->flush_on(spdlog::level::debug);
  logger() = std::move(made);
}

void log_line(LogLevel level, std::string_view text) {
  if (const auto& to = logger()) to->log(spdlog_level(level), "{}", text);
}

}  // namespace kvingest
