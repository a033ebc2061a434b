// skip.hpp -- saying why a test cannot run here.
//
//   if (const auto reason = strace_missing()) KV_SKIP(*reason);
//
// CTest counts the test as skipped. On the build machine (CI=true) everything must run: there it is a failure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tests/support/catch.hpp"

namespace kvingest::test {

/// Whether a test that cannot run is a failure here.
[[nodiscard]] bool everything_must_run();

/// Prints the line that CTest looks for.
void print_skipped(std::string_view reason);

/// Empty when root may mount here; else why not.
[[nodiscard]] std::optional<std::string> mounting_missing();

/// Empty when strace is installed and may trace; else why not.
[[nodiscard]] std::optional<std::string> strace_missing();

/// Empty when we are root and can become another user; else why not.
[[nodiscard]] std::optional<std::string> other_user_missing();

}  // namespace kvingest::test

#define KV_SKIP(reason)                                                                                   \
  do {                                                                                                    \
    const std::string& kv_skip_reason_ = (reason);                                                        \
    if (::kvingest::test::everything_must_run()) FAIL("cannot run on this machine: " << kv_skip_reason_); \
    ::kvingest::test::print_skipped(kv_skip_reason_);                                                     \
    return;                                                                                               \
  } while (false)
