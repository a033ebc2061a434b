// salvage.cpp -- reads every sound frame of a damaged log, for `kvq repair`.
//
// Like recovery it goes by the frames' numbers. Where the next one is missing and the log says that it was on disk, it
// is lost, and the next sound frame is looked for behind it; where the log does not say so, the log ends there, as it
// does for recovery: a frame behind a hole that nobody was promised does not come back.
#include "storage/salvage.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kvingest/codec/fixed.hpp"
#include "storage/mmap/format.hpp"
#include "storage/mmap/segment_list.hpp"

namespace kvingest::mmap_store {
namespace {

/// A file as a whole, mapped for reading.
class MappedFile {
 public:
  static Result<MappedFile> open(const Posix& posix, const std::filesystem::path& path) {
    auto file = File::open(posix, path, O_RDONLY);
    KV_TRY(file);
    auto bytes = file->size();
    KV_TRY(bytes);
    void* at = nullptr;
    if (*bytes > 0) at = posix.mmap(nullptr, *bytes, PROT_READ, MAP_PRIVATE, file->fd(), 0);
    if (at == MAP_FAILED) return fail(errno, "map {}", path.native());
    return MappedFile(posix, static_cast<const char*>(at), *bytes);
  }
  MappedFile(MappedFile&& other) noexcept
      : posix_(other.posix_), at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
    if (at_ != nullptr) posix_.munmap(const_cast<char*>(at_), bytes_);
  }
  [[nodiscard]] std::string_view view() const noexcept { return {at_, bytes_}; }

 private:
  MappedFile(const Posix& posix, const char* at, std::uint64_t bytes) : posix_(posix), at_(at), bytes_(bytes) {}
  const Posix& posix_;
  const char* at_;
  std::uint64_t bytes_;
};

struct FoundSegment {
  std::uint64_t number = 0;
  std::filesystem::path path;
  std::optional<ListedSegment> listed;
};

/// The seed in a header that may be damaged.
std::uint64_t raw_seed(std::string_view header) {
  return codec::get_fixed<std::uint64_t>(header.data() + 24);
}

bool all_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

class LogSalvage {
 public:
  LogSalvage(const SalvageSource& source, Salvager& salvager) : source_(source), salvager_(salvager) {}

  Result<std::optional<std::uint64_t>> run() {
    KV_TRY(find_segments());
    if (segments_.empty()) return fail(Code::corrupt, "{}: no segment of a log is there", source_.dir.native());
    for (const FoundSegment& segment : segments_) KV_TRY(find_synced_to(segment));
    for (const FoundSegment& segment : segments_) KV_TRY(read_segment(segment));
    KV_TRY(end_of_log());
    return std::optional(last_batch_);
  }

 private:
  Result<void> find_segments() {
    auto list = read_segment_list(source_.posix, source_.dir);
    if (!list && list.error().code != Code::corrupt) return tl::unexpected<Error>(std::move(list).error());
    if (!list) {
      list_is_lost_ = true;
      KV_TRY(salvager_.lose({segment_list_path(source_.dir), 0, 0,
                             "the list of segments is damaged: segments that compaction had dropped, if any are left, "
                             "are read, too, and may bring back what was erased"}));
    }
    const bool listed = list && list->has_value();
    if (listed) synced_to_ = (*list)->synced_to;
    const std::uint64_t last_listed = listed && !(*list)->segments.empty() ? (*list)->segments.back().number : 0;
    std::error_code error;
    for (std::filesystem::directory_iterator at(source_.dir, error), end; !error && at != end; at.increment(error)) {
      const auto number = segment_number(at->path().filename());
      if (!number) continue;
      const ListedSegment* entry = listed ? (*list)->find(*number) : nullptr;
      if (entry == nullptr && *number <= last_listed) continue;  // Compaction dropped it.
      segments_.push_back({*number, at->path(), entry != nullptr ? std::optional(*entry) : std::nullopt});
    }
    if (error) return fail(error.value(), "list {}", source_.dir.native());
    std::sort(segments_.begin(), segments_.end(),
              [](const FoundSegment& a, const FoundSegment& b) { return a.number < b.number; });
    if (!listed) return {};
    for (const ListedSegment& entry : (*list)->segments) {
      const bool there = std::any_of(segments_.begin(), segments_.end(),
                                     [&](const FoundSegment& found) { return found.number == entry.number; });
      if (!there) KV_TRY(salvager_.lose({source_.dir / segment_name(entry.number), 0, 0, "this segment is missing"}));
    }
    return {};
  }

  /// The highest synced_to of any sound header of a frame, whatever became of its frame.
  Result<void> find_synced_to(const FoundSegment& segment) {
    auto mapped = MappedFile::open(source_.posix, segment.path);
    KV_TRY(mapped);
    const std::string_view bytes = mapped->view();
    if (bytes.size() < kSegmentHeaderBytes) return {};
    const std::uint64_t seed = raw_seed(bytes);
    for (std::uint64_t at = kSegmentHeaderBytes; at + kFrameHeaderBytes <= bytes.size();) {
      const auto header = decode_frame_header(bytes.data() + at, seed);
      if (header) synced_to_ = std::max(synced_to_, header->synced_to);
      const bool whole = header && is_whole(bytes, at, *header, seed);
      at += whole ? frame_bytes(header->payload_bytes) : kFrameAlignment;
    }
    return {};
  }

  static bool is_whole(std::string_view bytes, std::uint64_t at, const FrameHeader& header, std::uint64_t seed) {
    return frame_bytes(header.payload_bytes) <= bytes.size() - at &&
           frame_is_sound(bytes.data() + at, header.payload_bytes, seed);
  }

  Result<void> read_segment(const FoundSegment& segment) {
    if (ended_) return salvager_.lose(whole_file(segment, "lies behind the end of the log"));
    auto mapped = MappedFile::open(source_.posix, segment.path);
    KV_TRY(mapped);
    const std::string_view bytes = mapped->view();
    if (bytes.size() < kSegmentHeaderBytes) return salvager_.lose(whole_file(segment, "is too short for a segment"));
    if (!decode_segment_header(bytes.data()))
      KV_TRY(salvager_.lose({segment.path, 0, kSegmentHeaderBytes, "the header of the segment is damaged"}));
    if (segment.listed && segment.number != last_number_ + 1) {
      // What stood between was dropped by compaction, not lost.
      last_frame_ = std::max(last_frame_, segment.listed->frames_before);
      last_batch_ = std::max(last_batch_, segment.listed->batches_before);
    } else if (list_is_lost_ && segment.number != last_number_ + 1) {
      gap_is_unknown_ = true;
    }
    last_number_ = segment.number;
    return read_frames(segment, bytes, raw_seed(bytes));
  }

  static Loss whole_file(const FoundSegment& segment, std::string what) {
    std::error_code ignored;
    return {segment.path, 0, std::filesystem::file_size(segment.path, ignored), std::move(what)};
  }

  Result<void> read_frames(const FoundSegment& segment, std::string_view bytes, std::uint64_t seed) {
    std::uint64_t at = kSegmentHeaderBytes;
    while (at + kFrameHeaderBytes <= bytes.size()) {
      const auto found = next_frame(bytes, at, seed);
      const std::uint64_t next = found ? *found : bytes.size();
      if (next > at && !all_zero(bytes.substr(at, next - at))) {
        if (last_frame_ + 1 > synced_to_) return end_here(segment, at, bytes);
        const std::uint64_t bytes_lost = bytes.substr(at, next - at).find_last_not_of('\0') + 1;
        KV_TRY(salvager_.lose({segment.path, at, bytes_lost, "no sound frame"}));
      }
      if (!found) return {};
      const FrameHeader header = *decode_frame_header(bytes.data() + next, seed);
      if (header.number != last_frame_ + 1 && last_frame_ + 1 > synced_to_) return end_here(segment, next, bytes);
      KV_TRY(note_gap(segment, next, header));
      KV_TRY(take_frame(segment, next, header, bytes.substr(next + kFrameHeaderBytes, header.payload_bytes)));
      at = next + frame_bytes(header.payload_bytes);
    }
    return {};
  }

  /// The place of the next sound frame at or behind `at` that is newer than the last one.
  std::optional<std::uint64_t> next_frame(std::string_view bytes, std::uint64_t at, std::uint64_t seed) const {
    for (; at + kFrameHeaderBytes <= bytes.size(); at += kFrameAlignment) {
      const auto header = decode_frame_header(bytes.data() + at, seed);
      if (header && header->number > last_frame_ && is_whole(bytes, at, *header, seed)) return at;
    }
    return std::nullopt;
  }

  Result<void> end_here(const FoundSegment& segment, std::uint64_t at, std::string_view bytes) {
    ended_ = true;
    const std::size_t end = bytes.find_last_not_of('\0') + 1;
    return salvager_.lose({segment.path, at, end - at,
                           fmt::format("frame {} is not sound, and what is from here on was never acknowledged as on "
                                       "disk: the log ends here",
                                       last_frame_ + 1)});
  }

  /// Frames that should be between the last one and this one.
  Result<void> note_gap(const FoundSegment& segment, std::uint64_t at, const FrameHeader& next) {
    const bool unknown = std::exchange(gap_is_unknown_, false);
    if (next.number == last_frame_ + 1 || unknown) return {};
    const std::uint64_t batch_before = next.batch - (next.kind == FrameKind::batch ? 1 : 0);
    const std::string batches =
        batch_before > last_batch_ ? fmt::format(", batches {} to {}", last_batch_ + 1, batch_before) : "";
    return salvager_.lose({segment.path, at, 0,
                           fmt::format("in front of this place frames {} to {}{} are missing; what they changed is as "
                                       "it was before",
                                       last_frame_ + 1, next.number - 1, batches)});
  }

  Result<void> take_frame(const FoundSegment& segment, std::uint64_t at, const FrameHeader& header,
                          std::string_view payload) {
    last_frame_ = header.number;
    last_batch_ = header.batch;
    auto taken =
        for_each_operation(payload, [&](const BatchOperation& operation) { return salvager_.take(operation); });
    if (taken || taken.error().code != Code::corrupt) return taken;
    return salvager_.lose({segment.path, at, frame_bytes(header.payload_bytes), taken.error().text});
  }

  Result<void> end_of_log() {
    if (ended_ || last_frame_ >= synced_to_) return {};
    return salvager_.lose({segments_.back().path, 0, 0,
                           fmt::format("frames {} to {} are missing at the end of the log, and they were on disk",
                                       last_frame_ + 1, synced_to_)});
  }

  const SalvageSource& source_;
  Salvager& salvager_;
  std::vector<FoundSegment> segments_;
  bool list_is_lost_ = false;
  bool gap_is_unknown_ = false;  // Segments are missing: dropped by compaction or lost, who knows.
  bool ended_ = false;
  std::uint64_t synced_to_ = 0;
  std::uint64_t last_number_ = 0;  // Of the segment read last.
  std::uint64_t last_frame_ = 0;
  std::uint64_t last_batch_ = 0;
};

}  // namespace

Result<std::optional<std::uint64_t>> salvage(const SalvageSource& source, Salvager& salvager) {
  return LogSalvage(source, salvager).run();
}

}  // namespace kvingest::mmap_store
