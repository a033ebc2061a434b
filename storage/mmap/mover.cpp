#include "storage/mmap/mover.hpp"

#include <mutex>

#include "base/check.hpp"
#include "kvingest/codec/fixed.hpp"
#include "storage/mmap/apply.hpp"
#include "storage/mmap/format.hpp"

namespace kvingest::mmap_store {
namespace {

constexpr std::size_t kRunHeaderBytes = 1 + 4 + 4 + 8;  // As kvingest/write_batch.hpp describes it.
constexpr std::size_t kRunBytesMax = std::size_t{64} << 20;

// Tells the index of a frame of moved records. The latch is held: readers see the one place or the other.
class MoveTarget {
 public:
  MoveTarget(RecordIndex& records, MetaIndex& meta, const Accounts& accounts, Place from)
      : records_(records), meta_(meta), accounts_(accounts), from_(from) {}

  void put(Space space, std::string_view key, RecordPlace place) {
    accounts_.record(place);
    accounts_.dead(space == Space::meta ? meta_.put(key, place) : records_.put(key, place));
  }
  void erase(Space /*space*/, std::string_view /*key*/, Place at, std::size_t bytes) { accounts_.erasure(at, bytes); }
  void run(std::uint64_t first, std::uint32_t count, std::string_view values, Place payload) {
    accounts_.run(payload, count, values.size());
    accounts_.dead_run(from_, count, values.size());
    records_.insert_run(first, count, payload, values.size());
  }

 private:
  RecordIndex& records_;
  MetaIndex& meta_;
  const Accounts& accounts_;
  Place from_;
};

}  // namespace

Result<void> Mover::begin(Segment& full, bool oldest) {
  segment_ = &full;
  keep_erasures_ = !oldest;
  reader_.reset();
  run_left_ = 0;
  if (const std::uint64_t until = full.sound_until(); until != full.end()) {
    return fail(Code::corrupt, "{}: damaged at offset {}: the frame there is not sound", full.path().native(), until);
  }
  offset_ = kSegmentHeaderBytes;
  return {};
}

Result<Mover::Step> Mover::step() {
  moved_.clear();
  open_run_ = kNoRun;
  const std::scoped_lock turn(turns_);
  Step step;
  step.more = gather();
  step.moved_bytes = moved_.size();
  // What the index says of a key is right only where the keys that it was compared with are.
  if (const auto damage = view_.damage()) return tl::unexpected<Error>(*damage);
  if (moved_.empty()) return step;
  const auto at = log_.append(FrameKind::moved, moved_);
  KV_TRY(at);
  index_.relocate([&](RecordIndex& records, MetaIndex& meta) {
    MoveTarget target(records, meta, accounts_, segment_->base());
    KV_ASSERT(apply_payload(moved_, *at, target));
  });
  return step;
}

// Copies what is live, up to the size of a step. False at the end of the segment.
bool Mover::gather() {
  for (std::size_t operations = 0; operations < kOperationsPerStep && moved_.size() < step_bytes_; ++operations) {
    if (run_left_ > 0) {
      take_run();
    } else if (next_operation()) {
      take_operation();
    } else {
      return false;
    }
  }
  return true;
}

bool Mover::next_operation() {
  while (true) {
    if (reader_) {
      const auto more = reader_->next(entry_);
      KV_ASSERT(more);  // Checked by begin(), and once written it does not change.
      if (*more) return true;
      reader_.reset();
    }
    if (offset_ >= segment_->end()) return false;
    const char* const frame = view_.at(segment_->base() + offset_);
    const auto header = decode_frame_header(frame, segment_->seed());
    KV_ASSERT(header);
    payload_at_ = segment_->base() + offset_ + kFrameHeaderBytes;
    reader_.emplace(std::string_view(frame + kFrameHeaderBytes, header->payload_bytes));
    offset_ += frame_bytes(header->payload_bytes);
  }
}

bool Mover::is_live(Space space, std::string_view key, Place place) const {
  const auto now = space == Space::meta ? index_.meta().find(key) : index_.records().find(key);
  return now && now->place() == place;
}

void Mover::take_operation() {
  const Place place = payload_at_ + entry_.offset;
  const char* end = entry_.key.data() + entry_.key.size();
  switch (entry_.kind) {
    case WriteBatch::Kind::run:
      run_from_ = entry_.first;
      run_left_ = entry_.count;
      return;
    case WriteBatch::Kind::put:
    case WriteBatch::Kind::put_meta:
      if (!is_live(entry_.space(), entry_.key, place)) return;
      end = entry_.value.data() + entry_.value.size();
      break;
    case WriteBatch::Kind::erase:
    case WriteBatch::Kind::erase_meta: {
      const bool meta = entry_.space() == Space::meta;
      if (!keep_erasures_ || (meta ? index_.meta().find(entry_.key) : index_.records().find(entry_.key))) return;
      break;
    }
  }
  open_run_ = kNoRun;
  const char* const begin = view_.at(place);
  moved_.append(begin, static_cast<std::size_t>(end - begin));
}

void Mover::take_run() {
  const Place low = payload_at_ + entry_.offset + kRunHeaderBytes;
  const RunTable::Stretch stretch = index_.records().runs().stretch(run_from_, run_from_ + run_left_ - 1, low,
                                                                    low + entry_.value.size(), step_bytes_);
  if (stretch.count == 0) {
    run_left_ = 0;
    return;
  }
  append_stretch(stretch);
  run_left_ -= static_cast<std::uint32_t>(stretch.first - run_from_) + stretch.count;
  run_from_ = stretch.first + stretch.count;
}

// Neighbours become one run, from however many frames they come.
void Mover::append_stretch(const RunTable::Stretch& stretch) {
  const bool goes_on = open_run_ != kNoRun && stretch.first == open_run_next_ && open_run_next_ != 0 &&
                       moved_.size() - open_run_ + stretch.bytes <= kRunBytesMax;
  if (!goes_on) {
    open_run_ = moved_.size();
    moved_.resize(moved_.size() + kRunHeaderBytes);
    moved_[open_run_] = static_cast<char>(WriteBatch::Kind::run);
    codec::put_fixed(moved_.data() + open_run_ + 1, std::uint32_t{0});
    codec::put_fixed(moved_.data() + open_run_ + 9, stretch.first);
  }
  moved_.append(view_.at(stretch.begin), stretch.bytes);
  char* const header = moved_.data() + open_run_;
  codec::put_fixed(header + 1, codec::get_fixed<std::uint32_t>(header + 1) + stretch.count);
  codec::put_fixed(header + 5, static_cast<std::uint32_t>(moved_.size() - open_run_ - kRunHeaderBytes));
  open_run_next_ = stretch.first + stretch.count;
}

}  // namespace kvingest::mmap_store
