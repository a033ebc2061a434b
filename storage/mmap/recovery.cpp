#include "storage/mmap/recovery.hpp"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "storage/mmap/frame_scanner.hpp"
#include "storage/mmap/torn_tail.hpp"

namespace kvingest::mmap_store {
namespace {

class Recovery {
 public:
  explicit Recovery(const RecoveryPlan& plan)
      : home_(plan.home), files_(plan.files.segments), read_only_(plan.read_only), plan_(plan) {
    result_.content.synced_to = plan.files.synced_to;
  }

  Result<Recovered> run();

 private:
  // What reading a segment on its own came to.
  struct Scan {
    Gathered gathered;
    std::uint64_t begin = kSegmentHeaderBytes;
    std::uint64_t end = kSegmentHeaderBytes;  // Behind its last frame: there it stopped, for this reason.
    FrameScanner::Step stop = FrameScanner::Step::end;
    std::uint64_t data_end = 0;  // Behind the last byte that is not zero.
    std::uint64_t frames = 0;
    FrameHeader first;  // If it has frames, as the three below.
    FrameHeader last;
    std::uint64_t commit = 0;
    std::uint64_t synced_to = 0;  // The highest in any of its frames.
    Result<void> result;
  };

  Result<void> open_segments();
  void begin_with(const CheckpointTable& checkpoint);
  [[nodiscard]] const CheckpointSegment* known(const Segment& segment) const;
  Result<void> read_segments(std::size_t begin, std::size_t end);
  Result<void> scan_segment(const Segment& segment, Scan& scan) const;
  Result<void> scan_frames(FrameScanner& scanner, const Segment& segment, Scan& scan) const;
  Result<void> join(std::size_t index, Scan& scan);
  Result<void> begin_segment(std::size_t index, Segment& segment);
  Result<void> take_frames(Segment& segment, const Scan& scan);
  Result<void> end_of_segment(std::size_t index, const Scan& scan);
  Result<void> no_next_frame(std::size_t index, std::uint64_t torn_from);
  Result<std::optional<std::uint64_t>> synced_to_in(const SegmentFile& found) const;
  Result<void> cut();
  Result<void> choose_active();
  Result<void> remove(const Segment& segment) const;
  Result<void> open_file(Segment& segment) const;
  Result<void> reopen(Segment& segment) const;

  const SegmentHome& home_;
  const std::vector<SegmentFile>& files_;
  const bool read_only_;
  const RecoveryPlan& plan_;
  const CheckpointTable* checkpoint_ = nullptr;
  std::vector<std::unique_ptr<Segment>> opened_;  // As files_; join() moves them into the result.
  Recovered result_;
  TornTail torn_;
};

// The number of the batch in front of a frame.
std::uint64_t batches_before(const FrameHeader& header) {
  return header.batch - (header.kind == FrameKind::batch ? 1 : 0);
}

Result<Recovered> Recovery::run() {
  KV_TRY(open_segments());
  checkpoint_ = plan_.load(opened_);
  if (checkpoint_ != nullptr) begin_with(*checkpoint_);
  for (std::size_t begin = 0; begin < files_.size() && !torn_.found();) {
    std::size_t end = begin;
    for (std::uint64_t bytes = 0; end < files_.size() && (end == begin || bytes < plan_.gather_bytes); ++end) {
      bytes += opened_[end]->capacity_bytes();
    }
    KV_TRY(read_segments(begin, end));
    begin = end;
  }
  if (torn_.found()) {
    result_.torn_tail = torn_.describe();
    if (!read_only_) KV_TRY(cut());
  }
  KV_TRY(choose_active());
  return std::move(result_);
}

// Mapped in the order of the log, so that an earlier record has a lower place.
Result<void> Recovery::open_segments() {
  for (const SegmentFile& found : files_) {
    auto file = File::open(home_.posix, found.path, read_only_ ? O_RDONLY : O_RDWR);
    KV_TRY(file);
    auto opened = Segment::open(home_, std::move(*file), found.header, read_only_ ? 0 : plan_.segment_bytes);
    KV_TRY(opened);
    if (&found != &files_.back()) (*opened)->file().reset();  // Hundreds of them would be too many descriptors.
    opened_.push_back(std::move(*opened));
  }
  return {};
}

// The index may name records behind the checkpoint's own frame, whose keys are looked up before their frames are read:
// they are known to be there.
void Recovery::begin_with(const CheckpointTable& checkpoint) {
  result_.content.synced_to = std::max(result_.content.synced_to, checkpoint.synced_to);
  result_.content.ends_in_mark = checkpoint.ends_in_mark;
  for (const auto& segment : opened_) {
    const CheckpointSegment* const found = known(*segment);
    if (found == nullptr) continue;
    segment->set_end(found->place_end);
    if (found->last_frame != 0) segment->set_unchecked();
  }
}

const CheckpointSegment* Recovery::known(const Segment& segment) const {
  return checkpoint_ == nullptr ? nullptr : checkpoint_->find(segment.number());
}

Result<void> Recovery::read_segments(std::size_t begin, std::size_t end) {
  std::vector<Scan> scans(end - begin);
  plan_.pool.parallel_for(scans.size(), 1, [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) scans[i].result = scan_segment(*opened_[begin + i], scans[i]);
  });
  std::vector<Gathered> gathered;
  for (std::size_t i = 0; i < scans.size() && !torn_.found(); ++i) {
    KV_TRY(join(begin + i, scans[i]));
    gathered.push_back(std::move(scans[i].gathered));
  }
  return plan_.replay.apply(plan_.pool, gathered);
}

Result<void> Recovery::scan_segment(const Segment& segment, Scan& scan) const {
  if (const CheckpointSegment* const found = known(segment); found != nullptr && found->last_frame != 0) {
    scan.begin = scan.end = found->end;
    if (found->last_frame < checkpoint_->frame) return {};  // The log went on in a later one.
  }
  auto file = File::open(home_.posix, segment.path(), O_RDONLY);
  KV_TRY(file);
  FrameScanner scanner(home_.posix, *file, segment.seed(), segment.capacity_bytes());
  scanner.begin_at(scan.begin);
  KV_TRY(scan_frames(scanner, segment, scan));
  auto data_end = scanner.data_end();
  KV_TRY(data_end);
  scan.data_end = *data_end;
  plan_.replay.sort(scan.gathered.keys);
  return {};
}

Result<void> Recovery::scan_frames(FrameScanner& scanner, const Segment& segment, Scan& scan) const {
  while (true) {
    auto step = scanner.next();
    KV_TRY(step);
    scan.stop = *step;
    scan.end = scanner.offset();
    if (*step != FrameScanner::Step::frame) return {};
    const FrameHeader& header = scanner.header();
    if (scan.frames > 0 && header.number != scan.last.number + 1) {
      scan.stop = FrameScanner::Step::bad;
      return {};
    }
    if (scan.frames > 0 && batches_before(header) != scan.last.batch) {
      return fail(Code::corrupt, "{}: the frame at offset {} says batch {}, behind batch {}", segment.path().native(),
                  scanner.offset(), header.batch, scan.last.batch);
    }
    if (scan.frames++ == 0) scan.first = header;
    scan.last = header;
    scan.commit = scanner.commit();
    scan.synced_to = std::max(scan.synced_to, header.synced_to);
    const Place place = segment.base() + scanner.offset() + kFrameHeaderBytes;
    if (auto done = Replay::gather(scanner.payload(), place, scan.gathered); !done) {
      return fail(std::move(done).error(), "{}: frame at offset {}", segment.path().native(), scanner.offset());
    }
    plan_.progress.add(frame_bytes(header.payload_bytes));
  }
}

// Puts a segment that has been read behind those before it.
Result<void> Recovery::join(std::size_t index, Scan& scan) {
  LogContent& content = result_.content;
  content.segments.push_back(std::move(opened_[index]));
  Segment& segment = *content.segments.back();
  KV_TRY(begin_segment(index, segment));
  if (const CheckpointSegment* const found = known(segment); found != nullptr && found->last_frame != 0) {
    content.last_frame = found->last_frame;
    content.last_batch = found->last_batch;
    segment.set_last_frame(found->last_frame, found->last_batch, found->commit);
    if (found->last_frame < checkpoint_->frame) return {};
  }
  if (scan.frames > 0 && scan.first.number != content.last_frame + 1) {
    scan.gathered = {};
    return no_next_frame(index, scan.begin);
  }
  KV_TRY(scan.result);
  if (scan.frames > 0) KV_TRY(take_frames(segment, scan));
  if (scan.stop == FrameScanner::Step::bad) return no_next_frame(index, scan.end);
  return end_of_segment(index, scan);
}

// Takes over what the list says stands in front of a segment, if compaction dropped those in between.
Result<void> Recovery::begin_segment(std::size_t index, Segment& segment) {
  LogContent& content = result_.content;
  const auto& listed = files_[index].listed;
  const std::uint64_t expected = index == 0 ? 1 : files_[index - 1].header.number + 1;
  if (listed && files_[index].header.number != expected) {
    content.last_frame = listed->frames_before;
    content.last_batch = listed->batches_before;
  }
  if (listed && (listed->frames_before != content.last_frame || listed->batches_before != content.last_batch)) {
    return fail(Code::corrupt, "{}: it follows frame {}, batch {}, but the list of segments says frame {}, batch {}",
                segment.path().native(), content.last_frame, content.last_batch, listed->frames_before,
                listed->batches_before);
  }
  segment.set_before(content.last_frame, content.last_batch);
  return {};
}

Result<void> Recovery::take_frames(Segment& segment, const Scan& scan) {
  LogContent& content = result_.content;
  if (batches_before(scan.first) != content.last_batch) {
    return fail(Code::corrupt, "{}: the frame at offset {} says batch {}, behind batch {}", segment.path().native(),
                scan.begin, scan.first.batch, content.last_batch);
  }
  segment.set_end(std::max(segment.end(), scan.end));
  segment.set_last_frame(scan.last.number, scan.last.batch, scan.commit);
  segment.usage().records += scan.gathered.records;
  segment.usage().bytes += scan.gathered.bytes;
  segment.usage().erasure_bytes += scan.gathered.erasure_bytes;
  content.last_frame = scan.last.number;
  content.last_batch = scan.last.batch;
  content.synced_to = std::max(content.synced_to, scan.synced_to);
  content.ends_in_mark = scan.last.kind == FrameKind::mark;
  content.replayed_bytes += scan.end - scan.begin;
  return {};
}

// Zeros where a frame could begin: the log goes on in the next segment, or ends here.
Result<void> Recovery::end_of_segment(std::size_t index, const Scan& scan) {
  const auto& listed = files_[index].listed;
  const bool cut_short = listed && listed->last_frame > result_.content.last_frame;
  if (scan.data_end > scan.end || cut_short) return no_next_frame(index, scan.end);
  return {};
}

// The frame after the last one is not where it should be, in segment `index` at `torn_from`.
Result<void> Recovery::no_next_frame(std::size_t index, std::uint64_t torn_from) {
  const LogContent& content = result_.content;
  auto file = File::open(home_.posix, files_[index].path, O_RDONLY);
  KV_TRY(file);
  FrameScanner scanner(home_.posix, *file, files_[index].header.seed, content.segments.back()->capacity_bytes());
  scanner.begin_at(torn_from);
  auto synced_to = scanner.synced_to_behind();
  KV_TRY(synced_to);
  std::uint64_t highest = std::max(content.synced_to, *synced_to);
  for (std::size_t i = index + 1; i < files_.size(); ++i) {
    auto in_file = synced_to_in(files_[i]);
    KV_TRY(in_file);
    torn_.later.push_back({files_[i].path, in_file->has_value()});
    highest = std::max(highest, in_file->value_or(0));
  }
  const std::uint64_t lost = content.last_frame + 1;
  if (highest >= lost) {
    return fail(Code::corrupt,
                "{}: damaged at offset {}: frame {} is not sound, and the log says it was on disk (up to {})",
                files_[index].path.native(), torn_from, lost, highest);
  }
  auto data_end = scanner.data_end();
  KV_TRY(data_end);
  torn_.path = files_[index].path;
  torn_.begin = torn_from;
  torn_.end = *data_end;
  return {};
}

// Nothing for a segment that was prepared and not used.
Result<std::optional<std::uint64_t>> Recovery::synced_to_in(const SegmentFile& found) const {
  auto file = File::open(home_.posix, found.path, O_RDONLY);
  KV_TRY(file);
  auto size = file->size();
  KV_TRY(size);
  FrameScanner scanner(home_.posix, *file, found.header.seed, *size);
  auto data_end = scanner.data_end();
  KV_TRY(data_end);
  if (*data_end == scanner.offset()) return std::nullopt;
  auto synced_to = scanner.synced_to_behind();
  KV_TRY(synced_to);
  return *synced_to;
}

Result<void> Recovery::cut() {
  auto aside = torn_.set_aside(home_);
  KV_TRY(aside);
  result_.torn_tail += *aside;
  Segment& last = *result_.content.segments.back();
  KV_TRY(open_file(last));
  KV_TRY(last.trim());
  return last.file().sync_all();
}

// The newest segment with frames takes more of them. Of the empty ones behind it (one that was prepared, and after a
// power failure perhaps one whose frames are gone) the first is used next; none may stay behind it, since it may be
// removed itself.
Result<void> Recovery::choose_active() {
  auto& segments = result_.content.segments;
  while (!segments.empty() && segments.back()->last_frame() == 0) {
    if (result_.prepared && !read_only_) KV_TRY(remove(*result_.prepared));
    result_.prepared = std::move(segments.back());
    segments.pop_back();
  }
  if (result_.prepared && !read_only_) KV_TRY(reopen(*result_.prepared));
  for (const auto& segment : segments) {
    if (segment->last_frame() == 0) return fail(Code::corrupt, "{}: no frame in it", segment->path().native());
  }
  if (segments.empty() || read_only_) return {};
  return reopen(*segments.back());
}

Result<void> Recovery::remove(const Segment& segment) const {
  if (home_.posix.unlink(segment.path().c_str()) == 0) return {};
  return fail(errno, "remove {}", segment.path().native());
}

Result<void> Recovery::open_file(Segment& segment) const {
  if (segment.file().is_open()) return {};
  auto file = File::open(home_.posix, segment.path(), O_RDWR);
  KV_TRY(file);
  segment.file() = std::move(*file);
  return {};
}

// Makes a segment ready for frames, with the room back that was cut. On a full disk it gets none; the next frame then
// asks for a new segment, and that says so.
Result<void> Recovery::reopen(Segment& segment) const {
  KV_TRY(open_file(segment));
  if (auto refilled = segment.refill(); !refilled && refilled.error().code != Code::no_space) return refilled;
  return {};
}

}  // namespace

namespace {

// Checks that no segment is missing: those of the list are all there, and those behind its last one have no gap.
Result<void> check_complete(const LogFiles& files, const std::optional<SegmentList>& list,
                            const std::filesystem::path& dir) {
  auto at = files.segments.begin();
  std::uint64_t next = 1;
  if (list) {
    for (const ListedSegment& listed : list->segments) {
      if (at == files.segments.end() || at->header.number != listed.number) {
        return fail(Code::corrupt, "{} is missing", (dir / segment_name(listed.number)).native());
      }
      ++at;
      next = listed.number + 1;
    }
  }
  for (; at != files.segments.end(); ++at, ++next) {
    if (at->header.number != next) return fail(Code::corrupt, "{} is missing", (dir / segment_name(next)).native());
  }
  return {};
}

}  // namespace

Result<LogFiles> list_segments(const Posix& posix, const std::filesystem::path& dir) {
  auto list = read_segment_list(posix, dir);
  KV_TRY(list);
  LogFiles files;
  if (*list) files.synced_to = (*list)->synced_to;
  const std::uint64_t last_listed = *list && !(*list)->segments.empty() ? (*list)->segments.back().number : 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    const auto number = segment_number(at->path().filename());
    if (!number) continue;
    const ListedSegment* listed = *list ? (*list)->find(*number) : nullptr;
    if (listed == nullptr && *number <= last_listed) {
      files.left_over.push_back(at->path());
      continue;
    }
    auto file = File::open(posix, at->path(), O_RDONLY);
    KV_TRY(file);
    auto header = read_segment_header(*file);
    KV_TRY(header);
    auto size = file->size();
    KV_TRY(size);
    files.segments.push_back({at->path(), *header, *size, listed ? std::optional(*listed) : std::nullopt});
  }
  if (error) return fail(error.value(), "list {}", dir.native());
  auto& segments = files.segments;
  std::sort(segments.begin(), segments.end(),
            [](const SegmentFile& a, const SegmentFile& b) { return a.header.number < b.header.number; });
  KV_TRY(check_complete(files, *list, dir));
  for (const SegmentFile& file : segments) {
    if (file.header.store_id != segments.front().header.store_id) {
      return fail(Code::corrupt, "{} is of another store than {}", file.path.native(), segments.front().path.native());
    }
  }
  if (*list && !segments.empty() && (*list)->store_id != segments.front().header.store_id) {
    return fail(Code::corrupt, "{} is of another store than {}", segment_list_path(dir).native(),
                segments.front().path.native());
  }
  return files;
}

Result<Recovered> recover(const RecoveryPlan& plan) {
  return Recovery(plan).run();
}

}  // namespace kvingest::mmap_store
