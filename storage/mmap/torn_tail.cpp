#include "storage/mmap/torn_tail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace kvingest::mmap_store {
namespace {

// A name that is not taken yet: a directory may have seen more than one crash.
std::filesystem::path free_name(const std::filesystem::path& dir, const std::string& stem, const std::string& suffix) {
  std::filesystem::path path = dir / (stem + suffix);
  std::error_code error;
  for (int i = 2; std::filesystem::exists(path, error); ++i) path = dir / fmt::format("{}-{}{}", stem, i, suffix);
  return path;
}

Result<void> copy_range(const File& from, std::uint64_t begin, std::uint64_t end, const File& to) {
  std::array<char, 64 << 10> buffer;
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t step = std::min<std::uint64_t>(end - at, buffer.size());
    KV_TRY(from.read_at(buffer.data(), step, at));
    KV_TRY(to.write_at(std::string_view(buffer.data(), step), at - begin));
    at += step;
  }
  return to.sync_all();
}

Result<void> copy_out(const Posix& posix, const TornTail& torn, const std::filesystem::path& copy) {
  auto from = File::open(posix, torn.path, O_RDONLY);
  KV_TRY(from);
  auto to = File::open(posix, copy, O_WRONLY | O_CREAT | O_TRUNC);
  KV_TRY(to);
  return copy_range(*from, torn.begin, torn.end, *to);
}

}  // namespace

std::string TornTail::describe() const {
  std::string text = fmt::format("torn tail: {} bytes of {} from offset {} on", end - begin, path.native(), begin);
  const auto torn = std::count_if(later.begin(), later.end(), [](const LaterSegment& one) { return one.has_frames; });
  if (torn > 0) text += fmt::format(" and {} later file(s)", torn);
  return text;
}

Result<std::string> TornTail::set_aside(const SegmentHome& home) const {
  std::string said = " were not acknowledged as on disk and are set aside in";
  if (end > begin) {
    const auto copy = free_name(home.dir, fmt::format("torn-{}-{}", path.stem().native(), begin), ".bin");
    if (auto copied = copy_out(home.posix, *this, copy); !copied) {
      home.posix.unlink(copy.c_str());
      if (copied.error().code != Code::no_space) return tl::unexpected<Error>(std::move(copied).error());
      said = " were not acknowledged as on disk and are dropped, because the disk is too full to set them aside";
    } else {
      said += " " + copy.native();
    }
  }
  // From the last one back: should this be interrupted, the log still has no file behind a gap.
  for (auto one = later.rbegin(); one != later.rend(); ++one) {
    if (!one->has_frames) {
      if (home.posix.unlink(one->path.c_str()) != 0) return fail(errno, "remove {}", one->path.native());
      continue;
    }
    const auto aside = free_name(home.dir, "torn-" + one->path.stem().native(), ".segment");
    if (home.posix.rename(one->path.c_str(), aside.c_str()) != 0) return fail(errno, "rename {}", one->path.native());
    said += " " + aside.native();
  }
  KV_TRY(sync_directory(home.posix, home.dir));
  return said;
}

}  // namespace kvingest::mmap_store
