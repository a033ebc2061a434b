// check.hpp -- assertions that stay on in release builds. For what only a bug of ours can break, never for input.
#pragma once

namespace kvingest {

/// Writes where and what to stderr and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace kvingest

#define KV_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::kvingest::assertion_failed(#expression, __FILE__, __LINE__))
