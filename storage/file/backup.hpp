// backup.hpp -- copies a slot file while it is being written.
//
// Threads: any; whoever calls sees to it that no slot is cleared meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/posix.hpp"
#include "kvingest/result.hpp"
#include "storage/file/slot_file.hpp"
#include "storage/file/slot_format.hpp"

namespace kvingest::slots {

/// Writes a slot file into the directory `to`, made if missing, with the records of the batches up to `batch`, whose
/// live slots are `live`, in the places they have in `file`; then reads it back.
/// Fails with: corrupt (a live record is damaged), io_error, no_space.
Result<void> copy_slots(const Posix& posix, const SlotFile& file, const Geometry& geometry, std::uint64_t batch,
                        const LiveSum& live, const std::filesystem::path& to);

/// Makes an empty slot file at `path`, on disk.
Result<void> create_slots(const Posix& posix, const std::filesystem::path& path, const CommitHeader& header);

}  // namespace kvingest::slots
