// recovery.hpp -- what a slot file holds, found by reading it. Nothing is changed.
//
// The commit header names the last batch that was committed, C, and the last one known to be on disk, S. Batches up to
// S must be there: their live slots are counted and summed, and compared with what the header says. Batches above S
// reached the kernel; after power loss any of their slots may be missing. None of those slots can have been written
// over, so a batch of which all records are there is whole, and P, the last one before the first that is not whole, is
// where the store stands. Everything behind P is a torn tail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvingest/result.hpp"
#include "storage/file/live_map.hpp"
#include "storage/file/slot_file.hpp"
#include "storage/file/slot_format.hpp"

namespace kvingest::slots {

struct Recovered {
  CommitHeader header;
  std::uint64_t header_copy = 0;  ///< Which of them it is.
  std::uint64_t last_batch = 0;   ///< P.

  LiveMap records;
  LiveMap meta;

  std::vector<Place> dead_synced;    ///< Replaced by batches up to S; tombstones last.
  std::vector<Place> dead_unsynced;  ///< Replaced by later batches; tombstones last.
  std::vector<Extent> free;          ///< Below `end`.
  std::uint64_t end = 0;             ///< No slot from here on is in use.
  std::vector<Place> residue;        ///< Records behind P: to be cleared before their numbers are given again.

  std::string torn_tail;  ///< A sentence when something behind P was found or is missing, else empty.
  std::string remark;     ///< A sentence when a commit header is damaged and the other one serves, else empty.
};

/// Fails with: corrupt (naming the file and the first damaged place), unsupported (a later format), io_error.
Result<Recovered> recover(const SlotFile& file);

}  // namespace kvingest::slots
