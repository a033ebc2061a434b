// bulk_mark.hpp -- the file that says a bulk load is under way: DIR/BULK, with the boot it runs in.
//
// A bulk load does not sync, so a power cut may destroy the whole environment, also what was synced before. After
// kill -9 everything is still in the page cache. The boot id tells the two apart: the same boot is sound (sync and go
// on), another one is not to be opened, because LMDB trusts its pages.
//
// Threads: the writer's.
#pragma once

#include <filesystem>

#include "base/posix.hpp"

namespace kvingest::lmdb {

enum class BulkState { none, same_boot, other_boot };

/// What DIR/BULK says. Fails with: io_error.
[[nodiscard]] Result<BulkState> read_bulk_mark(const Posix& posix, const std::filesystem::path& dir);

/// Writes DIR/BULK, durably. Fails with: no_space, io_error.
Result<void> set_bulk_mark(const Posix& posix, const std::filesystem::path& dir);

/// Removes DIR/BULK, durably. Fails with: io_error.
Result<void> clear_bulk_mark(const Posix& posix, const std::filesystem::path& dir);

}  // namespace kvingest::lmdb
