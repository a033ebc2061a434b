// record_reader.hpp -- reads records back from their places, and further ahead the longer places follow one another.
//
// Threads:  one for each reader.
// Lifetime: a value is valid until the next read. The places must not be released meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"
#include "storage/file/slot_file.hpp"
#include "storage/file/slot_format.hpp"

namespace kvingest::slots {

class RecordReader {
 public:
  RecordReader(const SlotFile& file, const Geometry& geometry) : file_(file), geometry_(geometry) {}

  /// The value of the record at `place`, which has this key in this space.
  /// Fails with: corrupt (it is not what was written; the text names file and offset), io_error.
  Result<std::string_view> read(Space space, std::string_view key, const Place& place);

 private:
  Result<void> fill(std::uint64_t offset, std::uint64_t bytes);

  const SlotFile& file_;
  Geometry geometry_;
  std::array<char, 4096> small_;  // Enough for most single records.
  std::string large_;
  std::string_view window_;          // What was read, in one of the two.
  std::uint64_t window_offset_ = 0;  // Of it in the file.
  std::uint64_t ahead_bytes_ = 0;
};

}  // namespace kvingest::slots
