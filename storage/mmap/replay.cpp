#include "storage/mmap/replay.hpp"

#include <algorithm>
#include <utility>

#include "kvingest/codec/fixed.hpp"
#include "kvingest/codec/varint.hpp"
#include "storage/mmap/apply.hpp"

namespace kvingest::mmap_store {
namespace {

BplusTree::Prefix prefix_of(std::string_view key) {
  char padded[sizeof(BplusTree::Prefix)] = {};
  key.copy(padded, sizeof padded);
  return BplusTree::Prefix{codec::get_ordered<std::uint64_t>(padded)} << 64 |
         codec::get_ordered<std::uint64_t>(padded + 8);
}

std::uint64_t word_of(std::string_view key, RecordPlace place) {
  const auto key_class = std::min<std::size_t>(key.size(), BplusTree::kLongKey);
  return std::uint64_t{key_class} << BplusTree::kValueBits | place.word();
}

class GatherTarget {
 public:
  explicit GatherTarget(Gathered& to) : to_(to) {}

  void put(Space space, std::string_view key, RecordPlace place) {
    ++to_.records;
    to_.bytes += place.about_bytes();
    space == Space::meta ? to_.meta.push_back({place.place(), place.word(), false}) : add(key, place);
  }
  void erase(Space space, std::string_view key, Place at, std::size_t bytes) {
    to_.erasure_bytes += bytes;
    space == Space::meta ? to_.meta.push_back({at, 0, true}) : add(key, RecordPlace(at, true, bytes));
  }
  void run(std::uint64_t first, std::uint32_t count, std::string_view values, Place payload) {
    if (!RunTable::countable(first, count)) {
      countable_ = false;
      return;
    }
    to_.records += count;
    to_.bytes += values.size();
    to_.runs.push_back({payload, first, count, static_cast<std::uint32_t>(values.size())});
  }
  [[nodiscard]] bool countable() const noexcept { return countable_; }

 private:
  void add(std::string_view key, RecordPlace place) {
    (key.size() == kSeqKeyBytes ? to_.numbers : to_.keys).push_back({prefix_of(key), word_of(key, place)});
  }

  Gathered& to_;
  bool countable_ = true;
};

}  // namespace

Result<void> Replay::gather(std::string_view payload, Place at, Gathered& to) {
  GatherTarget target(to);
  KV_TRY(apply_payload(payload, at, target));
  if (!target.countable()) return fail(Code::corrupt, "a run of numbers that there are not");
  return {};
}

// ---- the order of keys ----------------------------------------------------------------------------------------------

// The key of a put or an erasure where it lies. Its frame has been checked.
std::string_view Replay::key_in_log(Place operation) const {
  const char* at = view_.at(operation);
  const char* const end = at + 1 + 2 * codec::kVarint64BytesMax + kKeyBytesMax;
  const auto kind = static_cast<WriteBatch::Kind>(*at++);
  std::uint64_t key_bytes = 0;
  std::uint64_t value_bytes = 0;
  at = codec::get_varint(at, end, key_bytes);
  if (kind == WriteBatch::Kind::put || kind == WriteBatch::Kind::put_meta) at = codec::get_varint(at, end, value_bytes);
  return {at, key_bytes};
}

std::string_view Replay::key_of(const KeyChange& change, BplusTree::KeyBuffer& buffer) const {
  if (change.key_class() == BplusTree::kLongKey) return key_in_log(change.place().place());
  codec::put_ordered(buffer.data(), static_cast<std::uint64_t>(change.prefix >> 64));
  codec::put_ordered(buffer.data() + 8, static_cast<std::uint64_t>(change.prefix));
  return {buffer.data(), change.key_class()};
}

int Replay::compare_keys(const KeyChange& left, const KeyChange& right) const {
  if (left.prefix != right.prefix) return left.prefix < right.prefix ? -1 : 1;
  if (left.key_class() != right.key_class()) return int{left.key_class()} - int{right.key_class()};
  if (left.key_class() < BplusTree::kLongKey) return 0;
  return key_in_log(left.place().place()).compare(key_in_log(right.place().place()));
}

// Of one key, what comes first in the log comes first: segments are mapped in the order of the log.
bool Replay::is_before(const KeyChange& left, const KeyChange& right) const {
  const int order = compare_keys(left, right);
  return order < 0 || (order == 0 && left.place().place() < right.place().place());
}

void Replay::sort(std::vector<KeyChange>& changes) const {
  const auto before = [this](const KeyChange& left, const KeyChange& right) { return is_before(left, right); };
  if (!std::is_sorted(changes.begin(), changes.end(), before)) std::sort(changes.begin(), changes.end(), before);
}

/// Gives the changes of several sorted lists in their order: a tournament, in which each list's first change plays
/// those of others, and the losers are kept where they lost.
class Replay::Merge {
 public:
  Merge(const Replay& replay, std::span<const std::span<const KeyChange>> lists)
      : replay_(replay), lists_(lists.begin(), lists.end()), losers_(lists.size()) {
    std::vector<std::size_t> winners(2 * lists_.size());
    for (std::size_t i = 0; i < lists_.size(); ++i) winners[lists_.size() + i] = i;
    for (std::size_t node = lists_.size(); --node > 0;) {
      const bool second = beats(winners[2 * node + 1], winners[2 * node]);
      winners[node] = winners[2 * node + (second ? 1 : 0)];
      losers_[node] = winners[2 * node + (second ? 0 : 1)];
    }
    winner_ = winners[1];
  }

  [[nodiscard]] bool has_next() const { return !lists_[winner_].empty(); }
  KeyChange next() {
    const KeyChange change = lists_[winner_].front();
    lists_[winner_] = lists_[winner_].subspan(1);
    for (std::size_t node = (winner_ + lists_.size()) / 2; node > 0; node /= 2) {
      if (beats(losers_[node], winner_)) std::swap(losers_[node], winner_);
    }
    return change;
  }

 private:
  [[nodiscard]] bool beats(std::size_t left, std::size_t right) const {
    if (lists_[left].empty() || lists_[right].empty()) return lists_[right].empty() && !lists_[left].empty();
    return replay_.is_before(lists_[left].front(), lists_[right].front());
  }

  const Replay& replay_;
  std::vector<std::span<const KeyChange>> lists_;
  std::vector<std::size_t> losers_;  // Of each node of the tournament; the leaves, not in here, are the lists.
  std::size_t winner_ = 0;
};

// ---- applying -------------------------------------------------------------------------------------------------------

Result<void> Replay::apply(ThreadPool& pool, std::span<Gathered> segments) {
  bool runs = !records_.runs().empty();
  for (const Gathered& segment : segments) runs = runs || !segment.runs.empty();
  if (!runs) {  // Numbers are keys like others then.
    pool.parallel_for(segments.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) sort(segments[i].numbers);
    });
  }
  for (const Gathered& segment : segments) KV_TRY(apply_in_order(segment, runs));
  std::vector<std::span<const KeyChange>> lists;
  for (const Gathered& segment : segments) {
    if (!segment.keys.empty()) lists.emplace_back(segment.keys);
    if (!runs && !segment.numbers.empty()) lists.emplace_back(segment.numbers);
  }
  if (!lists.empty()) KV_TRY(apply_merged(lists));
  records_.tree().set_append_limit(BplusTree::kLeafEntries);
  for (Gathered& segment : segments) segment = {};
  return {};
}

Result<void> Replay::apply_merged(std::span<const std::span<const KeyChange>> lists) {
  Merge merge(*this, lists);
  KeyChange last = merge.next();
  while (merge.has_next()) {
    const KeyChange next = merge.next();
    if (compare_keys(last, next) != 0) {
      KV_TRY(apply_last(last));
    } else if (!last.erases()) {
      accounts_.dead(last.place());
    }
    last = next;
  }
  return apply_last(last);
}

// Neighbours that were written one behind the other go on like that, so their leaves may be full. Others fall anywhere:
// then leaves get from two thirds of their entries to all of them, in turn, so that later ones split them little by
// little.
void Replay::set_append_limit(const KeyChange& change) {
  const Place place = change.place().place();
  in_turn_ = place > std::exchange(last_place_, place) ? in_turn_ + 1 : 0;
  constexpr std::uint32_t kLeast = BplusTree::kLeafEntries * 2 / 3;
  constexpr std::uint32_t kMost = BplusTree::kLeafEntries;
  const bool in_order = in_turn_ >= kLeast / 4;
  records_.tree().set_append_limit(
      in_order ? kMost
               : kLeast + static_cast<std::uint32_t>(records_.tree().used_bytes() / BplusTree::kNodeBytes) %
                              (kMost - kLeast + 1));
}

Result<void> Replay::apply_last(const KeyChange& change) {
  BplusTree::KeyBuffer buffer;
  const std::string_view key = key_of(change, buffer);
  BplusTree& tree = records_.tree();
  std::optional<std::uint64_t> before;
  if (change.erases()) {
    before = tree.erase(key);
  } else {
    set_append_limit(change);
    if (!tree.room_for(1)) return tl::unexpected<Error>(index_full_());
    before = tree.put(key, change.place().word());
  }
  if (before) accounts_.dead(RecordPlace::from_word(*before));
  return {};
}

// Meta entries; and where there are runs, those and the numbers, which may concern them.
Result<void> Replay::apply_in_order(const Gathered& segment, bool runs) {
  for (const Gathered::Meta& meta : segment.meta) apply_meta(meta);
  if (!runs) return {};
  auto number = segment.numbers.begin();
  for (const Gathered::Run& run : segment.runs) {
    for (; number != segment.numbers.end() && number->place().place() < run.payload; ++number) {
      KV_TRY(apply_number(*number));
    }
    apply_run(run);
  }
  for (; number != segment.numbers.end(); ++number) KV_TRY(apply_number(*number));
  return {};
}

// A checkpoint may have a number in a run and on its own: both are looked at.
Result<void> Replay::apply_number(const KeyChange& change) {
  BplusTree::KeyBuffer buffer;
  accounts_.dead(records_.strike_out(key_of(change, buffer)));
  return apply_last(change);
}

void Replay::apply_run(const Gathered::Run& run) {
  if (records_.touches(run.first, run.count)) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      char bytes[kSeqKeyBytes];
      codec::put_ordered(bytes, run.first + i);
      const std::string_view key(bytes, sizeof bytes);
      accounts_.dead(records_.strike_out(key));
      accounts_.dead(records_.erase(key));
    }
  }
  records_.insert_run(run.first, run.count, run.payload, run.bytes);
}

void Replay::apply_meta(const Gathered::Meta& meta) {
  const std::string_view key = key_in_log(meta.place);
  accounts_.dead(meta.erases ? meta_.erase(key) : meta_.put(key, RecordPlace::from_word(meta.word)));
}

}  // namespace kvingest::mmap_store
