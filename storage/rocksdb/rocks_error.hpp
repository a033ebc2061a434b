// rocks_error.hpp -- RocksDB's statuses as our errors.
//
// Threads: pure functions.
#pragma once

#include <rocksdb/status.h>

#include <string>

#include "kvingest/result.hpp"

namespace kvingest::rocks {

/// Whether a full disk or quota is the reason.
[[nodiscard]] bool is_no_space(const rocksdb::Status& status);

/// The Error for `status`, which is not ok.
[[nodiscard]] Error to_error(const rocksdb::Status& status, std::string doing);

/// Builds the failure of a Result: `return rocks::failure(status, "open {}", path);`
template <class... Args>
[[nodiscard]] tl::unexpected<Error> failure(const rocksdb::Status& status, fmt::format_string<Args...> doing,
                                            Args&&... args) {
  return tl::unexpected<Error>(to_error(status, fmt::format(doing, std::forward<Args>(args)...)));
}

}  // namespace kvingest::rocks
