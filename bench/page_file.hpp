// page_file.hpp -- a file of numbered pages, ways to read it, and a bound on the memory that may cache it.
//
// Threads: values and functions of their arguments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/posix.hpp"
#include "kvingest/result.hpp"

namespace kvingest::bench {

inline constexpr std::size_t kPageBytes = 4096;

/// Writes `pages` pages, each of which begins with its number, and syncs them.
Result<File> make_page_file(const std::filesystem::path& path, std::uint64_t pages);

/// Takes what can be taken of the file out of the page cache; it must have been synced.
void drop_from_cache(const File& file);

/// A mapping of a whole file; unmapped with its object.
class Mapping {
 public:
  /// `flags` are added to MAP_SHARED. Fails with: io_error.
  static Result<Mapping> map(const File& file, std::uint64_t bytes, bool writable, int flags = 0);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  [[nodiscard]] char* data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// How much of it is in memory, as the kernel says: 0 to 1.
  [[nodiscard]] double residency() const;
  /// The sum of the first words of all pages, in order: touches each once.
  [[nodiscard]] std::uint64_t touch_all() const noexcept;

 private:
  Mapping(char* data, std::uint64_t bytes) : data_(data), bytes_(bytes) {}
  char* data_;
  std::uint64_t bytes_;
};

/// A group of processes whose memory, page cache included, is bounded. Removed with its object, when nobody is in it.
class MemoryLimit {
 public:
  /// Fails with: unsupported (none may be made here; the text says why).
  static Result<MemoryLimit> make(std::uint64_t bytes);
  MemoryLimit(MemoryLimit&& other) noexcept : dir_(std::exchange(other.dir_, {})) {}
  MemoryLimit& operator=(MemoryLimit&&) = delete;
  ~MemoryLimit();
  [[nodiscard]] const std::filesystem::path& dir() const noexcept { return dir_; }

 private:
  explicit MemoryLimit(std::filesystem::path dir) : dir_(std::move(dir)) {}
  std::filesystem::path dir_;
};

/// What reading pages at random took.
struct PageReads {
  double ns_per_page = 0;
  std::uint64_t faults = 0;  ///< For which the disk was read.
};

/// Reads `reads` pages of the file at random, after as many that warm up, each compared with its number. `way` is mmap,
/// pread or direct (O_DIRECT). With `group`, the calling process joins that MemoryLimit first, for good.
/// Fails with: io_error, corrupt, unsupported (this file system has no O_DIRECT).
[[nodiscard]] Result<PageReads> read_pages(const std::filesystem::path& path, std::string_view way, std::uint64_t reads,
                                           const std::optional<std::string>& group);

}  // namespace kvingest::bench
