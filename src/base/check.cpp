#include "base/check.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kvingest {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  char text[512];
  const int length = std::snprintf(text, sizeof text, "%s:%d: assertion failed: %s\n", file, line, expression);
  if (length > 0) {
    // The outcome cannot matter any more; the variable keeps warn_unused_result quiet.
    [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text, std::strlen(text));
  }
  std::abort();
}

}  // namespace kvingest
