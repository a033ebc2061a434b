// salvage.cpp -- reads every sound record of a damaged slot file, for `kvq repair`.
//
// It holds to the rules of recovery: of two records of one key the newer one, batches above `synced` as a whole or not
// at all. A damaged record has no key that could be trusted, so what it replaced may come back where it was not cleared
// yet; the number of live slots in the commit header says how much is missing.
#include "storage/salvage.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "kvingest/codec/fixed.hpp"
#include "storage/file/slot_scanner.hpp"

namespace kvingest::slots {
namespace {

struct Newest {
  RecordHead head;
  Place place;
};

class SlotSalvage {
 public:
  SlotSalvage(SlotFile file, Salvager& salvager) : file_(std::move(file)), salvager_(salvager) {}

  Result<std::optional<std::uint64_t>> run() {
    KV_TRY(read_header());
    SlotScanner scanner(file_, header_.geometry, header_.synced);
    KV_TRY(read_all(scanner));
    find_last_batch();
    LiveSum live;
    for (const auto& [key, newest] : newest_) live.add(newest.place);
    KV_TRY(compare(live));
    KV_TRY(read_tail(scanner));
    KV_TRY(give_all());
    return std::optional(last_batch_);
  }

 private:
  Result<void> read_header() {
    std::array<std::string, kCommitHeaderCopies> bytes;
    for (std::uint64_t copy = 0; copy < kCommitHeaderCopies; ++copy) {
      bytes[copy].resize(kCommitHeaderBytes);
      const auto read = file_.read_up_to(bytes[copy].data(), kCommitHeaderBytes, copy * kCommitHeaderStrideBytes);
      KV_TRY(read);
      const auto header = decode_commit_header(bytes[copy]);
      if (header && (!header_is_sound_ || header->generation > header_.generation)) header_ = *header;
      header_is_sound_ = header_is_sound_ || header;
      if (header || bytes[copy].find_first_not_of('\0') == std::string::npos) continue;
      KV_TRY(salvager_.lose(
          {file_.path(), copy * kCommitHeaderStrideBytes, kCommitHeaderBytes, "a commit header is damaged"}));
    }
    const auto size = file_.size();
    KV_TRY(size);
    file_bytes_ = *size;
    if (header_is_sound_) {
      slots_ = file_bytes_ > kSlotsBegin ? header_.geometry.length(file_bytes_ - kSlotsBegin) : 0;
      return {};
    }
    return guess_geometry(bytes);
  }

  /// With neither header sound: what they say of the slots, if records are found with it.
  Result<void> guess_geometry(const std::array<std::string, kCommitHeaderCopies>& bytes) {
    for (const std::string& copy : bytes) {
      const Geometry geometry{codec::get_fixed<std::uint32_t>(copy.data() + 12),
                              codec::get_fixed<std::uint64_t>(copy.data() + 16)};
      const std::uint32_t slot_bytes = geometry.slot_bytes;
      if (slot_bytes < kSlotBytesMin || slot_bytes > kSlotBytesMax || !std::has_single_bit(slot_bytes)) continue;
      header_.geometry = geometry;
      header_.synced = ~std::uint64_t{0};  // All batches alike: which were committed is not known.
      slots_ = file_bytes_ > kSlotsBegin ? geometry.length(file_bytes_ - kSlotsBegin) : 0;
      SlotScanner scanner(file_, geometry, header_.synced);
      bool found = false;
      KV_TRY(scanner.scan({0, slots_}, [&](const ScannedRecord&) -> Result<void> {
        found = true;
        return {};
      }));
      if (!found) continue;
      return salvager_.lose(
          {file_.path(), 0, 0,
           "no commit header is sound: which batches were committed, and how many records there were, "
           "is not known; all that are found are taken but those of a last batch that is not whole"});
    }
    return fail(Code::corrupt, "{}: no commit header says how slots are laid out: nothing of it can be read",
                file_.path().native());
  }

  Result<void> read_all(SlotScanner& scanner) {
    std::uint64_t next = 0;
    const auto scanned = scanner.scan({0, slots_}, [&](const ScannedRecord& record) -> Result<void> {
      KV_TRY(look_at_gap(next, record.place.slot));
      next = record.place.slot + record.place.length;
      if (header_is_sound_ && record.head.batch <= header_.synced) {
        take(record);
        return {};
      }
      BatchTally& tally = tallies_[record.head.batch];
      ++tally.found;
      tally.count = record.head.count;
      return {};
    });
    KV_TRY(scanned);
    return look_at_gap(next, slots_);
  }

  /// Slots that are no sound record: cleared ones are zeros.
  Result<void> look_at_gap(std::uint64_t first, std::uint64_t end) {
    std::string slot(header_.geometry.slot_bytes, '\0');
    for (; first < end; ++first) {
      const auto read = file_.read_up_to(slot.data(), slot.size(), header_.geometry.offset(first));
      KV_TRY(read);
      const std::string_view bytes(slot.data(), *read);
      if (bytes.find_first_not_of('\0') == std::string_view::npos) continue;
      if (!unsound_.empty() && unsound_.back().end() == first)
        ++unsound_.back().length;
      else
        unsound_.push_back({first, 1});
    }
    return {};
  }

  void take(const ScannedRecord& record) {
    if (record.head.kind == RecordKind::nothing) return;
    const std::pair key(record.head.space(), std::string(record.key()));
    const auto [at, added] = newest_.try_emplace(key, Newest{record.head, record.place});
    if (!added && at->second.head.older_than(record.head)) at->second = {record.head, record.place};
  }

  /// As recovery does: up to the first batch above `synced` that is not whole. Without a header: all, but for the
  /// newest one where it is not whole.
  void find_last_batch() {
    if (!header_is_sound_) {
      if (tallies_.empty()) return;
      const auto& [number, tally] = *tallies_.rbegin();
      last_batch_ = tally.whole() ? number : number - 1;
      return;
    }
    for (last_batch_ = header_.synced; last_batch_ < header_.committed; ++last_batch_) {
      const auto next = tallies_.find(last_batch_ + 1);
      if (next == tallies_.end() || next->second.found != next->second.count) return;
    }
  }

  Result<void> compare(const LiveSum& live) {
    if (!header_is_sound_) return lose_unsound();
    if (live == header_.live) return {};
    KV_TRY(lose_unsound());
    const std::string found =
        live.slots < header_.live.slots
            ? fmt::format("{} of {} live slots are missing", header_.live.slots - live.slots, header_.live.slots)
            : fmt::format("{} slots are live and {} were", live.slots, header_.live.slots);
    return salvager_.lose({file_.path(), 0, 0,
                           fmt::format("{} as of batch {}; keys whose newest record is lost may have an older value, "
                                       "and erased ones may be back",
                                       found, header_.synced)});
  }

  Result<void> lose_unsound() {
    for (const Extent& extent : unsound_) {
      const std::uint64_t offset = header_.geometry.offset(extent.first);
      const std::uint64_t bytes = std::min(extent.length * header_.geometry.slot_bytes, file_bytes_ - offset);
      KV_TRY(salvager_.lose({file_.path(), offset, bytes, fmt::format("{} slots are no sound record", extent.length)}));
    }
    return {};
  }

  Result<void> read_tail(SlotScanner& scanner) {
    std::uint64_t dropped = 0;
    KV_TRY(scanner.scan({0, slots_}, [&](const ScannedRecord& record) -> Result<void> {
      if (header_is_sound_ && record.head.batch <= header_.synced) return {};
      if (record.head.batch <= last_batch_)
        take(record);
      else
        ++dropped;
      return {};
    }));
    if (dropped == 0) return {};
    return salvager_.lose(
        {file_.path(), 0, 0,
         fmt::format("{} records of batches from {} on, which are not whole, are dropped", dropped, last_batch_ + 1)});
  }

  Result<void> give_all() {
    std::string record;
    for (const auto& [key, newest] : newest_) {
      if (!newest.head.is_put()) continue;
      record.resize(newest.head.bytes());
      const auto read = file_.read_up_to(record.data(), record.size(), header_.geometry.offset(newest.place.slot));
      KV_TRY(read);
      if (*read != record.size())
        return fail(Code::io_error, "{}: it became shorter while it was read", file_.path().native());
      KV_TRY(salvager_.take({key.first, false, key.second, value_of(newest.head, record)}));
    }
    return {};
  }

  SlotFile file_;
  Salvager& salvager_;
  CommitHeader header_;
  bool header_is_sound_ = false;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t slots_ = 0;
  std::uint64_t last_batch_ = 0;
  std::map<std::pair<Space, std::string>, Newest> newest_;
  std::map<std::uint64_t, BatchTally> tallies_;  // Of batches above `synced`.
  std::vector<Extent> unsound_;
};

}  // namespace

Result<std::optional<std::uint64_t>> salvage(const SalvageSource& source, Salvager& salvager) {
  auto file = SlotFile::open(source.posix, source.dir / kFileName, O_RDONLY);
  KV_TRY(file);
  return SlotSalvage(*std::move(file), salvager).run();
}

}  // namespace kvingest::slots
