#include "tests/support/strace.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace kvingest::test {
namespace {

std::vector<std::string> attach_command(const std::string& output, pid_t pid, const std::vector<std::string>& what) {
  std::vector<std::string> words{"strace", "-f", "-s", "256", "-o", output};
  words.insert(words.end(), what.begin(), what.end());
  words.insert(words.end(), {"-p", fmt::format("{}", pid)});
  return words;
}

}  // namespace

Strace::Strace(pid_t pid, const std::vector<std::string>& what) : process_(attach_command(temp_ / "calls", pid, what)) {
  // "strace: Process 4711 attached with 5 threads" comes when every thread is.
  const auto attached = [&] { return process_.err_text().find(" attached") != std::string::npos; };
  if (!eventually([&] { return attached() || !process_.running(); }) || !attached())
    throw std::runtime_error("strace did not attach: " + process_.err_text());
}

std::vector<std::string> Strace::detach() {
  process_.signal(SIGINT);
  // It may hang on a process that has ended meanwhile; what it wrote until then is complete.
  if (!process_.wait(std::chrono::seconds(5))) process_.kill();
  std::vector<std::string> calls;
  std::istringstream text(file_text(temp_ / "calls"));
  for (std::string call; std::getline(text, call);) calls.push_back(call);
  return calls;
}

std::map<std::string, std::string> traced_environment() {
  const char* const options = std::getenv("ASAN_OPTIONS");
  return {{"ASAN_OPTIONS", fmt::format("{}:detect_leaks=0", options == nullptr ? "" : options)}};
}

std::vector<std::string> strace_command(const std::string& output, std::vector<std::string> what) {
  std::vector<std::string> words{"strace", "-D", "-f", "-qq", "-s", "256", "-o", output};
  words.insert(words.end(), what.begin(), what.end());
  words.emplace_back("--");
  return words;
}

}  // namespace kvingest::test
