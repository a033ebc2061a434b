// slot_scanner.hpp -- reads a slot file from front to back and shows every whole record in it, live or not.
//
// Threads:  one for each scanner; any number of scanners, also while the file is written: a record that is being
//           written is shown whole or not at all.
// Lifetime: what a visitor is shown is valid until it returns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvingest/function_ref.hpp"
#include "kvingest/result.hpp"
#include "storage/file/slot_file.hpp"
#include "storage/file/slot_format.hpp"

namespace kvingest::slots {

struct ScannedRecord {
  RecordHead head;
  Place place;
  std::string_view bytes;  ///< Head, key and value.

  [[nodiscard]] std::string_view key() const noexcept { return key_of(head, bytes); }
};

class SlotScanner {
 public:
  /// `synced`: remains of later batches are no damage.
  SlotScanner(const SlotFile& file, const Geometry& geometry, std::uint64_t synced)
      : file_(file), geometry_(geometry), synced_(synced) {}

  /// Shows the records that begin in `extent`. Fails with: io_error, and what `visit` fails with.
  Result<void> scan(Extent extent, FunctionRef<Result<void>(const ScannedRecord&)> visit);

  /// The head of the undamaged record at `place`.
  [[nodiscard]] Result<RecordHead> head_at(const Place& place) const;

  /// The first slot seen that fails its checks. To be asked when a record is missing: slots that were freed may look
  /// the same.
  [[nodiscard]] std::optional<std::uint64_t> first_damaged() const noexcept { return damaged_ ? damaged_ : remains_; }

 private:
  Result<std::string_view> bytes_at(std::uint64_t slot, std::uint64_t bytes, std::uint64_t read_ahead_end);
  void note_damage(std::string_view bytes, std::uint64_t slot);

  const SlotFile& file_;
  Geometry geometry_;
  std::uint64_t synced_;
  std::string buffer_;
  std::uint64_t buffer_offset_ = 0;  // Of its first byte in the file.
  std::uint64_t buffer_bytes_ = 0;   // That are filled.
  std::optional<std::uint64_t> damaged_;
  std::optional<std::uint64_t> remains_;  // Without even the form of a record.
};

}  // namespace kvingest::slots
