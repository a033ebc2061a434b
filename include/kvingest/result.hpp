// kvingest/result.hpp -- how every part of kvingest reports failure.
//
// A function that can fail because of the world or a peer returns Result<T>: a value, or an Error with a code one can
// act on and a sentence for people. Exceptions never cross a folder. A missing key is an answer, not an error.
//
// Threads: values; no shared state.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace kvingest {

/// What a caller can do about a failure. The set is closed: engines map their own errors onto it.
enum class Code : std::uint8_t {
  invalid_argument,  ///< The caller's mistake; nothing was done.
  too_large,         ///< A key, value or batch beyond its limit (kvingest/limits.hpp); nothing was done.
  unsupported,       ///< This engine or build cannot do it; `capabilities()` says so beforehand.
  busy,              ///< Nothing was written; the same call may succeed later.
  no_space,          ///< Nothing was written; free space (disk, map or index budget) and try again.
  corrupt,           ///< Stored bytes do not match their checksum or format; the text names file and place.
  io_error,          ///< A system call failed; `sys_errno` says how.
  locked,            ///< Another process uses the store; the text names its pid where known.
  failed,            ///< Latched after a failed sync or an unknown outcome: what is on disk is *unknown*. Reopen.
};

/// The code's own name, as documents and logs spell it: "no_space".
[[nodiscard]] std::string_view to_string(Code code) noexcept;

struct Error {
  Code code = Code::failed;
  int sys_errno = 0;  ///< errno of the failed call, 0 when none was involved.
  std::string text;   ///< What was being done, to what, and what to do about it; no trailing newline.
};

/// A value or an Error. Ignoring one is a build error.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

/// Builds the failure of a Result: `return fail(Code::corrupt, "{}: bad magic", path);`
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(Code code, fmt::format_string<Args...> text, Args&&... args) {
  return tl::unexpected<Error>(Error{code, 0, fmt::format(text, std::forward<Args>(args)...)});
}

/// The Error for a failed system call: errno decides the code (ENOSPC, EDQUOT and EFBIG are no_space, EWOULDBLOCK is
/// busy, the rest io_error) and its description is put behind `text`.
[[nodiscard]] Error errno_error(int sys_errno, std::string text);

/// Builds the failure for errno: `return fail(errno, "pwrite {} at {}", path, offset);`
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(int sys_errno, fmt::format_string<Args...> text, Args&&... args) {
  return tl::unexpected<Error>(errno_error(sys_errno, fmt::format(text, std::forward<Args>(args)...)));
}

/// Passes an error on, with what the caller was doing put in front: "open kvdata: lock: ...".
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(Error inner, fmt::format_string<Args...> doing, Args&&... args) {
  inner.text = fmt::format(doing, std::forward<Args>(args)...) + ": " + inner.text;
  return tl::unexpected<Error>(std::move(inner));
}

}  // namespace kvingest

/// Returns the error of `expression` from the enclosing function, which returns some Result.
#define KV_TRY(expression)                                                         \
  do {                                                                             \
    if (auto&& kv_try_result_ = (expression); !kv_try_result_)                     \
      return tl::unexpected<::kvingest::Error>(std::move(kv_try_result_).error()); \
  } while (false)
