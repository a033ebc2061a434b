#include "storage/file/recovery.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "storage/file/slot_scanner.hpp"

namespace kvingest::slots {
namespace {

class Recovery {
 public:
  explicit Recovery(const SlotFile& file) : file_(file) {}

  Result<Recovered> run();

 private:
  Result<void> read_header();
  Result<void> read_synced(SlotScanner& scanner);
  Result<void> check_synced(const SlotScanner& scanner) const;
  void find_last_batch();
  Result<void> read_tail(SlotScanner& scanner);
  void note_tail(const ScannedRecord& record);
  Result<void> take(const ScannedRecord& record, const SlotScanner& scanner, std::vector<Place>& dead);
  void collect_tombstones();
  void collect_free();
  void describe_tail();

  [[nodiscard]] std::uint64_t synced() const noexcept { return out_.header.synced; }
  [[nodiscard]] std::uint64_t committed() const noexcept { return out_.header.committed; }
  [[nodiscard]] LiveMap& map(Space space) noexcept { return space == Space::meta ? out_.meta : out_.records; }
  [[nodiscard]] std::string path() const { return file_.path().native(); }

  struct Tombstone {
    Space space;
    std::string key;
    Place place;
    std::uint64_t batch;
  };

  const SlotFile& file_;
  Recovered out_;
  std::uint64_t slots_in_file_ = 0;
  std::vector<bool> used_;                // By slot: live, or dead and not to be written over yet.
  std::vector<BatchTally> tallies_;       // Of the batches above synced, in order.
  std::vector<Extent> tail_;              // Where records above synced are.
  std::vector<Tombstone> tombstones_;     // That were the newest of their key when they were found.
  std::vector<Place> old_tombstones_[2];  // That are not, of batches up to synced and later.
  std::uint64_t unfinished_ = 0;          // Records of batches that were never committed.
};

Result<Recovered> Recovery::run() {
  KV_TRY(read_header());
  SlotScanner scanner(file_, out_.header.geometry, synced());
  KV_TRY(read_synced(scanner));
  KV_TRY(check_synced(scanner));
  find_last_batch();
  KV_TRY(read_tail(scanner));
  collect_tombstones();
  collect_free();
  describe_tail();
  return std::move(out_);
}

Result<void> Recovery::read_header() {
  std::array<std::optional<CommitHeader>, kCommitHeaderCopies> copies;
  std::optional<std::uint64_t> damaged;
  for (std::uint64_t i = 0; i < copies.size(); ++i) {
    char bytes[kCommitHeaderBytes] = {};
    const std::uint64_t offset = i * kCommitHeaderStrideBytes;
    const auto read = file_.read_up_to(bytes, sizeof bytes, offset);
    KV_TRY(read);
    const std::string_view view(bytes, *read);
    const auto version = commit_header_version(view);
    if (version && *version > kFormatVersion) {
      return fail(Code::unsupported, "{}: format {} is newer than this build's {}: use a newer build", path(), *version,
                  kFormatVersion);
    }
    copies[i] = decode_commit_header(view);
    if (!copies[i] && view.find_first_not_of('\0') != std::string_view::npos) damaged = offset;
  }
  if (!copies[0] && !copies[1]) {
    return fail(Code::corrupt, "{}: no commit header at offset 0 or {} is undamaged", path(), kCommitHeaderStrideBytes);
  }
  const bool second = !copies[0] || (copies[1] && copies[1]->generation > copies[0]->generation);
  out_.header_copy = second ? 1 : 0;
  out_.header = *copies[out_.header_copy];
  if (damaged) {
    out_.remark = fmt::format("{}: the commit header at offset {} is damaged; the other one names batch {}", path(),
                              *damaged, committed());
  }
  const auto size = file_.size();
  KV_TRY(size);
  slots_in_file_ = *size > kSlotsBegin ? out_.header.geometry.length(*size - kSlotsBegin) : 0;
  return {};
}

Result<void> Recovery::read_synced(SlotScanner& scanner) {
  used_.resize(slots_in_file_);
  // Each batch has a record: batches beyond the number of slots are not there.
  tallies_.resize(std::min(committed() - synced(), slots_in_file_));
  return scanner.scan({0, slots_in_file_}, [&](const ScannedRecord& record) -> Result<void> {
    if (record.head.batch <= synced()) return take(record, scanner, out_.dead_synced);
    note_tail(record);
    return {};
  });
}

void Recovery::note_tail(const ScannedRecord& record) {
  const Place& place = record.place;
  if (!tail_.empty() && tail_.back().end() == place.slot) {
    tail_.back().length += place.length;
  } else {
    tail_.push_back({place.slot, place.length});
  }
  const std::uint64_t number = record.head.batch - synced() - 1;
  if (number >= tallies_.size()) return;
  BatchTally& tally = tallies_[number];
  if (tally.found++ == 0) tally.count = record.head.count;
}

Result<void> Recovery::check_synced(const SlotScanner& scanner) const {
  const LiveSum found = out_.records.live() + out_.meta.live();
  if (found == out_.header.live) return {};
  const auto damaged = scanner.first_damaged();
  const std::string where =
      damaged ? fmt::format("the slot at offset {} fails its checksum", out_.header.geometry.offset(*damaged))
              : std::string("no slot fails its checksum: some were lost or replaced");
  return fail(Code::corrupt, "{}: {}; {} live slots are found and {} were there as of batch {}", path(), where,
              found.slots, out_.header.live.slots, synced());
}

void Recovery::find_last_batch() {
  const auto torn =
      std::find_if_not(tallies_.begin(), tallies_.end(), [](const BatchTally& tally) { return tally.whole(); });
  out_.last_batch = synced() + static_cast<std::uint64_t>(torn - tallies_.begin());
}

Result<void> Recovery::read_tail(SlotScanner& scanner) {
  for (const Extent& extent : tail_) {
    KV_TRY(scanner.scan(extent, [&](const ScannedRecord& record) -> Result<void> {
      if (record.head.batch <= synced()) return {};
      if (record.head.batch <= out_.last_batch) return take(record, scanner, out_.dead_unsynced);
      out_.residue.push_back(record.place);
      if (record.head.batch > committed()) ++unfinished_;
      return {};
    }));
  }
  return {};
}

// Lets the newest record of each key stand. Slots are not in the order of batches, so either of two may be the newer.
Result<void> Recovery::take(const ScannedRecord& record, const SlotScanner& scanner, std::vector<Place>& dead) {
  std::fill_n(used_.begin() + static_cast<std::ptrdiff_t>(record.place.slot), record.place.length, true);
  const auto bury = [&](const Place& place) {
    const bool late = &dead == &out_.dead_unsynced;
    (place.tombstone ? old_tombstones_[late ? 1 : 0] : dead).push_back(place);
  };
  if (record.head.kind == RecordKind::nothing) {
    bury(record.place);
    return {};
  }
  LiveMap& keys = map(record.head.space());
  if (const auto other = keys.put(record.key(), record.place)) {
    const auto other_head = scanner.head_at(*other);
    KV_TRY(other_head);
    if (record.head.older_than(*other_head)) {
      keys.put(record.key(), *other);
      bury(record.place);
      return {};
    }
    bury(*other);
  }
  if (record.place.tombstone) {
    tombstones_.push_back({record.head.space(), std::string(record.key()), record.place, record.head.batch});
  }
  return {};
}

// Takes erased keys out, whose tombstones were to be found only by older records of theirs.
void Recovery::collect_tombstones() {
  for (const Tombstone& tombstone : tombstones_) {
    LiveMap& keys = map(tombstone.space);
    const auto newest = keys.find(tombstone.key);
    if (!newest || !(*newest == tombstone.place)) continue;
    old_tombstones_[tombstone.batch > synced() ? 1 : 0].push_back(*newest);
    keys.erase(tombstone.key);
  }
  out_.dead_synced.insert(out_.dead_synced.end(), old_tombstones_[0].begin(), old_tombstones_[0].end());
  out_.dead_unsynced.insert(out_.dead_unsynced.end(), old_tombstones_[1].begin(), old_tombstones_[1].end());
}

void Recovery::collect_free() {
  out_.end = used_.size();
  while (out_.end > 0 && !used_[out_.end - 1]) --out_.end;
  for (std::uint64_t slot = 0; slot < out_.end; ++slot) {
    if (used_[slot]) continue;
    if (!out_.free.empty() && out_.free.back().end() == slot) {
      ++out_.free.back().length;
    } else {
      out_.free.push_back({slot, 1});
    }
  }
}

void Recovery::describe_tail() {
  if (out_.last_batch < committed()) {
    out_.torn_tail =
        fmt::format("{}: torn tail: batch {} is not whole; batches {} to {}, which were not synced, are dropped",
                    path(), out_.last_batch + 1, out_.last_batch + 1, committed());
  } else if (unfinished_ > 0) {
    out_.torn_tail = fmt::format("{}: torn tail: {} records of batch {}, which was not committed, are dropped", path(),
                                 unfinished_, committed() + 1);
  }
}

}  // namespace

Result<Recovered> recover(const SlotFile& file) {
  return Recovery(file).run();
}

}  // namespace kvingest::slots
