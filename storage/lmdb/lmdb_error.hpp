// lmdb_error.hpp -- LMDB's return codes as our errors.
//
// Threads: a pure function.
#pragma once

#include <string>

#include "kvingest/result.hpp"

namespace kvingest::lmdb {

/// The Error for `rc`, which is not 0: LMDB's own codes are negative, those of system calls are errno.
[[nodiscard]] Error to_error(int rc, std::string doing);

/// Builds the failure of a Result: `return lmdb::failure(rc, "open {}", path);`
template <class... Args>
[[nodiscard]] tl::unexpected<Error> failure(int rc, fmt::format_string<Args...> doing, Args&&... args) {
  return tl::unexpected<Error>(to_error(rc, fmt::format(doing, std::forward<Args>(args)...)));
}

}  // namespace kvingest::lmdb
