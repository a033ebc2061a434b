#include "tests/support/skip.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/process.hpp"
#include "tests/support/tmpfs.hpp"

namespace kvingest::test {

bool everything_must_run() {
  const char* ci = std::getenv("CI");
  return ci != nullptr && std::string_view(ci) == "true";
}

void print_skipped(std::string_view reason) {
  std::printf("SKIPPED: %.*s\n", static_cast<int>(reason.size()), reason.data());
}

std::optional<std::string> mounting_missing() {
  try {
    const Tmpfs tried(64 << 10);
    return std::nullopt;
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::optional<std::string> strace_missing() {
  const Finished tried = run({"strace", "-o", "/dev/null", "true"}, {.env = {{"LSAN_OPTIONS", "detect_leaks=0"}}});
  if (tried.exit.code == 127) return "strace is not installed";
  if (tried.exit.code != 0) return "strace may not trace here: " + tried.err;
  return std::nullopt;
}

std::optional<std::string> other_user_missing() {
  if (::geteuid() != 0) return "only root can become another user";
  return std::nullopt;
}

}  // namespace kvingest::test
