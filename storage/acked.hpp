// acked.hpp -- the file ACKED: up to which batch the store has answered, and up to which all was on disk. An engine
// that comes back with less has lost what it promised, and is not opened as if nothing were missing.
//
// Two checksummed copies are written in turn, so that a torn write costs the newer one at most. storage/FORMAT.md has
// an example.
//
// Threads:  one at a time.
// Lifetime: owns its file; settle() makes the last words durable, the destructor does not.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/posix.hpp"

namespace kvingest {

inline constexpr std::string_view kAckedName = "ACKED";

/// A batch and the last arrival number that the store held with it, 0 where records carry none.
struct BatchMark {
  std::uint64_t batch = 0;
  std::uint64_t seq = 0;
};

struct Acked {
  BatchMark acknowledged;
  BatchMark on_disk;
  std::uint64_t counter = 0;  ///< Which of two copies is the newer; the file's own business.
};

/// One copy, as it stands in the file: magic, five numbers, checksum.
using AckedCopy = std::array<char, 8 + 8 * 5 + 8>;
[[nodiscard]] AckedCopy encode_acked(const Acked& acked) noexcept;
/// nullopt where `bytes` are no sound copy.
[[nodiscard]] std::optional<Acked> decode_acked(std::string_view bytes) noexcept;

/// The newer sound copy; nullopt where there is no file. Fails with: corrupt (no copy is sound), io_error.
[[nodiscard]] Result<std::optional<Acked>> read_acked(const Posix& posix, const std::filesystem::path& dir);

/// Makes a new file that says `acked`, durably, in place of any other. Fails with: no_space, io_error.
Result<void> create_acked(const Posix& posix, const std::filesystem::path& dir, const Acked& acked);

class AckedFile {
 public:
  /// Opens the file that is there. Fails with: corrupt, io_error.
  [[nodiscard]] static Result<AckedFile> open(const Posix& posix, const std::filesystem::path& dir);

  [[nodiscard]] const Acked& last() const noexcept { return last_; }

  /// Hands the news to the kernel. Where what is on disk has moved, they are synced once a second.
  /// Fails with: io_error, no_space.
  Result<void> record(const BatchMark& acknowledged, const BatchMark& on_disk);

  /// All that was acknowledged is on disk: says so, durably. Fails with: io_error, no_space.
  Result<void> settle();

 private:
  using Clock = std::chrono::steady_clock;

  AckedFile(File file, const Acked& last) : file_(std::move(file)), last_(last), synced_on_disk_(last.on_disk.batch) {}

  Result<void> sync();

  File file_;
  Acked last_;
  std::uint64_t synced_on_disk_;  // last_.on_disk.batch as of the last sync.
  Clock::time_point synced_at_{};
};

}  // namespace kvingest
