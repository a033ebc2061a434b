// versioned_index.hpp -- where each key's newest record is, and where it was for scans that began earlier. Shared by
// `map`, `hash`, `file` and `mmap`.
//
// A place is what the engine finds a value by: a slot, an offset in a log, a pointer. The index orders versions by the
// number of the batch that made them, never by place, so places may move. The main container holds the newest place of
// each key and nothing else; what a change replaces is kept aside only for keys that a running scan may still visit.
// Without scans there is no version memory at all.
//
//   auto update = index.update(batch_number, operations);         find(space, key, [](Place) {...})
//   update.put(Space::records, key, place);                       scan(space, range, [](key, Place) {...})
//   update.erase(Space::meta, key);
//   update.publish();                                              // Readers see all of it, or none before.
//   index.release([](Place place, std::uint64_t batch) {...});     // Nobody reaches these places any more.
//
// A container (Records, Meta) has: Place, copyable; size(); find(key) -> optional<Place>; put(key, place) and
// erase(key) -> optional<Place>, the place until then. An ordered one also has: Cursor with valid(), key(), place(),
// next(), previous() (either may end in an invalid cursor); seek(key), the first entry at or behind key; first();
// last(). sorted_map.hpp is one. It may have find_many(keys, places).
//
// Threads:  one writer at a time: update(), relocate(), release(). The rest on any thread. Visitors of find() run under
// the
//           latch and must be quick: no system call. Those of the others run outside it and may read files. No visitor
//           calls the index.
// Lifetime: a place is valid until its visitor has returned, and for the writer until release() names it. Key views die
//           with the visitor.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "kvingest/store.hpp"
#include "storage/index/latch.hpp"
#include "storage/index/merged_walk.hpp"
#include "storage/index/older_versions.hpp"
#include "storage/index/readers.hpp"

namespace kvingest {

template <class Container>
concept OrderedContainer = requires(const Container& container) {
  { container.first() } -> std::same_as<typename Container::Cursor>;
};

/// One that looks up several keys at a time faster than one after the other.
template <class Container>
concept FindsMany =
    requires(const Container& container, std::span<const std::string_view> keys,
             std::span<std::optional<typename Container::Place>> places) { container.find_many(keys, places); };

template <class Records, class Meta = Records>
class VersionedIndex {
 public:
  using Place = typename Records::Place;
  static_assert(std::is_same_v<Place, typename Meta::Place>);

  /// A scan lets the writer in after so many entries.
  static constexpr std::size_t kEntriesPerHold = 256;
  /// An update of more operations than this lets readers in after so many: some milliseconds' work.
  static constexpr std::size_t kOperationsPerHold = 16384;

  class Update;

  /// The arguments go to the container of the records.
  template <class... Args>
  explicit VersionedIndex(Args&&... records) : records_(std::forward<Args>(records)...) {}

  /// Begins to apply batch `sequence`, which is above the published one, of about so many operations. Readers wait
  /// meanwhile or, while a large batch is applied, see the store without it.
  [[nodiscard]] Update update(std::uint64_t sequence, std::size_t operations) {
    return Update(*this, sequence, operations);
  }

  /// Calls `f(records, meta)` under the latch to change places of keys and nothing else, for compaction: readers see
  /// the same as before. Those who began earlier may have the old places in hand: see readers_before().
  template <class F>
  void relocate(F&& f) {
    const std::unique_lock lock(latch_);
    f(records_.container, meta_.container);
  }
  /// A number for this moment; whether anybody still reads who began before such a moment.
  [[nodiscard]] std::uint64_t reader_count() const { return readers_.count(); }
  [[nodiscard]] bool readers_before(std::uint64_t moment) const { return readers_.any_before(moment); }

  /// Names every place that nobody reaches any more, with the number of the batch that replaced it, in that order.
  template <class F>
  void release(F&& visit) {
    if (retired_.empty()) return;
    const std::uint64_t oldest = readers_.oldest();
    for (; !retired_.empty() && retired_.front().sequence <= oldest; retired_.pop_front()) {
      visit(retired_.front().place, retired_.front().sequence);
    }
  }

  /// Number of the newest batch that readers see.
  [[nodiscard]] std::uint64_t published() const {
    const std::shared_lock lock(latch_);
    return published_;
  }
  /// For recovery, before anybody reads: the batches up to `sequence` are what the index holds.
  void set_published(std::uint64_t sequence) {
    const std::unique_lock lock(latch_);
    published_ = sequence;
    records_.published_size = records_.container.size();
    meta_.published_size = meta_.container.size();
  }

  /// Number of keys as of the published batch.
  [[nodiscard]] std::size_t size(Space space) const {
    const std::shared_lock lock(latch_);
    return in(*this, space, [](const auto& part) { return part.published_size; });
  }
  /// Older versions kept for running scans, and places not yet released. For stats(); the second, writer only.
  [[nodiscard]] std::size_t older_versions() const noexcept { return older_versions_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t retired_places() const noexcept { return retired_.size(); }

  /// Calls `visit(place)` under the latch with the newest place of `key`; false if there is none.
  template <class F>
  bool find(Space space, std::string_view key, F&& visit) const {
    const std::shared_lock lock(latch_);
    return in(*this, space, [&](const auto& part) {
      const std::optional<Place> place = newest(part, key);
      if (place) visit(*place);
      return place.has_value();
    });
  }

  /// Like find(), but `visit` runs outside the latch and may take its time.
  template <class F>
  bool find_pinned(Space space, std::string_view key, F&& visit) const {
    std::optional<Readers::Reader> pin;
    std::optional<Place> place;
    {
      const std::shared_lock lock(latch_);
      place = in(*this, space, [&](const auto& part) { return newest(part, key); });
      if (!place) return false;
      pin.emplace(readers_, published_);
    }
    visit(*place);
    return true;
  }

  /// Calls `visit(index, place)` for each of `keys` that is there, all as of one batch, until it returns false. Calls
  /// `ahead(place)` some visits before that of the place, for the engine to ask for its memory.
  template <class Ahead, class F>
  void multi_find(Space space, std::span<const std::string_view> keys, Ahead&& ahead, F&& visit) const {
    in(*this, space, [&](const auto& part) { multi_find_in(part, space, keys, ahead, visit); });
  }
  template <class F>
  void multi_find(Space space, std::span<const std::string_view> keys, F&& visit) const {
    multi_find(
        space, keys, [](const Place& /*place*/) {}, visit);
  }

  /// Calls `visit(key, place)` for the entries of `range` as of now, in order, until it returns false; returns how many
  /// were visited, that one included.
  template <class F>
  std::size_t scan(Space space, const Range& range, F&& visit) const {
    return in(*this, space, [&](const auto& part) -> std::size_t {
      if constexpr (OrderedContainer<std::remove_cvref_t<decltype(part.container)>>) {
        return scan_in(part, space, range, visit);
      } else {
        KV_ASSERT(false && "scan of an unordered container");
        return 0;
      }
    });
  }

  /// Calls `f(records, meta)` under the latch; the containers may be read, for example for their size.
  template <class F>
  decltype(auto) inspect(F&& f) const {
    const std::shared_lock lock(latch_);
    return f(std::as_const(records_.container), std::as_const(meta_.container));
  }

  /// The containers, for whoever holds an Update, or before anybody reads.
  [[nodiscard]] Records& records() noexcept { return records_.container; }
  [[nodiscard]] Meta& meta() noexcept { return meta_.container; }
  [[nodiscard]] const Records& records() const noexcept { return records_.container; }

 private:
  template <class Container>
  struct Part {
    template <class... Args>
    explicit Part(Args&&... args) : container(std::forward<Args>(args)...) {}

    Container container;
    OlderVersions<Place> older;
    std::size_t published_size = 0;
    KeyInterval before_update;  // While a large batch is applied: the keys there were before it.
  };
  struct Retired {
    Place place;
    std::uint64_t sequence;
  };
  struct Page;

  template <class Self, class F>
  static decltype(auto) in(Self& self, Space space, F&& f) {
    return space == Space::meta ? f(self.meta_) : f(self.records_);
  }

  template <class Container>
  [[nodiscard]] static KeyInterval keys_of(const Part<Container>& part) {
    KeyInterval all;
    if constexpr (OrderedContainer<Container>) {
      const auto last = part.container.last();
      if (last.valid()) all.high = std::string(last.key());
      all.empty = !last.valid();
    }
    return all;
  }
  // The keys readers may see now, of those in `wanted`. Keys put behind the last one later need no older version.
  template <class Container>
  [[nodiscard]] KeyInterval visible(const Part<Container>& part, KeyInterval wanted) const {
    const KeyInterval all = updating_ ? part.before_update : keys_of(part);
    if (all.high && (!wanted.high || *all.high < *wanted.high)) wanted.high = all.high;
    wanted.empty = all.empty || (wanted.high && *wanted.high < wanted.low);
    return wanted;
  }

  template <class Container>
  [[nodiscard]] static std::optional<Place> as_of(const Part<Container>& part, std::uint64_t sequence,
                                                  const KeyInterval& keys, std::string_view key) {
    if (!keys.contains(key)) return std::nullopt;
    if (const auto* version = part.older.as_of(key, sequence)) return version->place;
    return part.container.find(key);
  }
  template <class Container>
  [[nodiscard]] std::optional<Place> newest(const Part<Container>& part, std::string_view key) const {
    return updating_ ? as_of(part, published_, part.before_update, key) : part.container.find(key);
  }

  struct Found {
    std::size_t index;
    Place place;
  };
  template <class Container>
  void find_group(const Part<Container>& part, const Readers::Reader& reader, std::span<const std::string_view> keys,
                  std::size_t first, std::vector<Found>& found) const;
  template <class Container, class Ahead, class F>
  void multi_find_in(const Part<Container>& part, Space space, std::span<const std::string_view> keys, Ahead& ahead,
                     F& visit) const;
  template <class Container, class F>
  std::size_t scan_in(const Part<Container>& part, Space space, const Range& range, F& visit) const;
  template <class Container>
  void fill(const Part<Container>& part, const Readers::Reader& reader, const Range& range, std::size_t wanted,
            Page& page) const;
  void forget_if_last() const;

  struct Forgotten {
    OlderVersions<Place> records;
    OlderVersions<Place> meta;
  };
  // All older versions, if nobody needs any, for the caller to destroy where it holds nobody up. The latch is held, the
  // readers are frozen.
  [[nodiscard]] Forgotten take_unneeded() const {
    Forgotten all;
    if (updating_ || !readers_.frozen_empty()) return all;
    std::swap(all.records, records_.older);
    std::swap(all.meta, meta_.older);
    count_older();
    return all;
  }
  [[nodiscard]] bool has_older() const noexcept { return !records_.older.empty() || !meta_.older.empty(); }
  void count_older() const {
    older_versions_.store(records_.older.size() + meta_.older.size(), std::memory_order_relaxed);
  }

  mutable Latch latch_;  // Guards all below but retired_, which is the writer's.
  mutable Part<Records> records_;
  mutable Part<Meta> meta_;
  std::uint64_t published_ = 0;
  bool updating_ = false;  // A large batch is applied and not yet published.
  std::deque<Retired> retired_;
  mutable std::atomic<std::size_t> older_versions_{0};
  mutable Readers readers_;
};

/// A batch that is being applied. Between the constructor and publish() nothing may fail.
template <class Records, class Meta>
class VersionedIndex<Records, Meta>::Update {
 public:
  Update(const Update&) = delete;
  Update& operator=(const Update&) = delete;
  ~Update() { KV_ASSERT(published_); }

  void put(Space space, std::string_view key, Place place) {
    count_operation();
    in(index_, space, [&](auto& part) { changed(part, space, key, part.container.put(key, std::move(place))); });
  }
  void erase(Space space, std::string_view key) {
    count_operation();
    in(index_, space, [&](auto& part) {
      const std::optional<Place> before = part.container.erase(key);
      if (before) changed(part, space, key, before);
    });
  }

  /// True when no reader may ask for a key from `first` on as it was: the engine may change such keys in the container
  /// itself, where it knows a faster way than put().
  [[nodiscard]] bool unseen_from(Space space, std::string_view first) const {
    if (!keeping_) return true;
    return in(index_, space, [&](auto& part) {
      return !(large_ && part.before_update.reaches(first)) && !index_.readers_.frozen_need_from(space, first);
    });
  }
  /// Notes that `key`, which the engine changes in the container itself, had the place `before` until now, or none.
  void note(Space space, std::string_view key, const std::optional<Place>& before) {
    in(index_, space, [&](auto& part) { changed(part, space, key, before); });
    count_operation();  // Not before: readers may come in, and the container is changed already.
  }
  /// For a place that the engine itself has taken out of a container.
  void retire(Place place) { index_.retired_.push_back({std::move(place), sequence_}); }

  void publish() {
    index_.published_ = sequence_;
    index_.updating_ = false;
    published_ = true;
    for_each_part([](auto& part) { part.published_size = part.container.size(); });
    index_.has_older() ? drop_older() : leave();
  }

 private:
  friend class VersionedIndex;
  Update(VersionedIndex& index, std::uint64_t sequence, std::size_t operations)
      : index_(index), sequence_(sequence), large_(operations > kOperationsPerHold) {
    enter();
    KV_ASSERT(sequence > index_.published_ && !index_.updating_);
    if (!large_) return;
    index_.updating_ = true;
    for_each_part([](auto& part) { part.before_update = keys_of(part); });
  }

  void enter() {
    latch_ = std::unique_lock(index_.latch_);
    readers_ = index_.readers_.freeze();
    keeping_ = large_ || !index_.readers_.frozen_empty();
  }
  void leave() {
    readers_.unlock();
    latch_.unlock();
  }
  void count_operation() {
    if (++operations_ % kOperationsPerHold == 0 && large_) let_readers_in();
  }
  void let_readers_in() {
    leave();
    enter();
  }

  // Drops what nobody needs, as far as twice what this update can have added, so that it comes to an end.
  void drop_older() {
    const Forgotten all = index_.take_unneeded();  // Freed when the latch has been given back.
    for (std::size_t left = 2 * operations_ + kEntriesPerHold;;) {
      const std::size_t step = std::min(left, kOperationsPerHold);
      const std::uint64_t oldest = index_.readers_.frozen_oldest();
      for_each_part([&](auto& part) { part.older.forget(oldest, step); });
      left -= step;
      if (left == 0 || !index_.has_older()) break;
      let_readers_in();
    }
    index_.count_older();
    leave();
  }

  template <class Container>
  void changed(Part<Container>& part, Space space, std::string_view key, const std::optional<Place>& before) {
    if (keeping_ && (index_.readers_.frozen_need(space, key) || (large_ && part.before_update.contains(key)))) {
      part.older.record(key, sequence_, before);
    }
    if (before) index_.retired_.push_back({*before, sequence_});
  }
  template <class F>
  void for_each_part(F&& f) {
    f(index_.records_);
    f(index_.meta_);
  }

  VersionedIndex& index_;
  std::uint64_t sequence_;
  std::size_t operations_ = 0;
  bool large_;
  bool keeping_ = false;  // Somebody may need older versions.
  bool published_ = false;
  std::unique_lock<Latch> latch_;
  std::unique_lock<std::mutex> readers_;
};

/// What a scan has copied under the latch and shows outside it.
template <class Records, class Meta>
struct VersionedIndex<Records, Meta>::Page {
  struct Entry {
    std::size_t key_end;
    Place place;
  };

  void clear() {
    keys.clear();
    entries.clear();
  }
  void add(std::string_view key, const Place& place) {
    keys.append(key);
    entries.push_back({keys.size(), place});
  }
  // Shows the entries until `visit` returns false; false then. Counts them in `visited`.
  template <class F>
  bool show(F& visit, std::size_t& visited) const {
    std::size_t key_begin = 0;
    for (const Entry& entry : entries) {
      ++visited;
      if (!visit(std::string_view(keys).substr(key_begin, entry.key_end - key_begin), entry.place)) return false;
      key_begin = entry.key_end;
    }
    return true;
  }

  std::string keys;  // One behind the other.
  std::vector<Entry> entries;
  std::optional<std::string> position;  // The last key walked over.
  bool ended = false;
};

template <class Records, class Meta>
template <class Container, class F>
std::size_t VersionedIndex<Records, Meta>::scan_in(const Part<Container>& part, Space space, const Range& range,
                                                   F& visit) const {
  std::size_t visited = 0;
  std::optional<Readers::Reader> reader;
  Page page;
  bool more = true;
  while (more && !page.ended && visited < range.limit) {
    page.clear();
    {
      const std::shared_lock lock(latch_);
      if (!reader) {
        KeyInterval wanted{std::string(range.first.value_or("")), std::nullopt};
        if (range.last) wanted.high = std::string(*range.last);
        reader.emplace(readers_, published_, space, visible(part, std::move(wanted)));
      }
      fill(part, *reader, range, range.limit - visited, page);
    }
    more = page.show(visit, visited);
  }
  reader.reset();
  forget_if_last();
  return visited;
}

// Puts the next entries into `page`, at most `wanted`, and walks over at most kEntriesPerHold keys.
template <class Records, class Meta>
template <class Container>
void VersionedIndex<Records, Meta>::fill(const Part<Container>& part, const Readers::Reader& reader, const Range& range,
                                         std::size_t wanted, Page& page) const {
  page.ended = true;
  if (reader.keys().empty) return;
  MergedWalk<Container> walk(part.container, part.older, range, *reader.keys().high, page.position);
  for (std::size_t steps = 0; walk.valid(); ++steps, walk.next()) {
    if (steps == kEntriesPerHold || page.entries.size() == wanted) {
      page.ended = false;
      return;
    }
    const std::optional<Place> place = walk.as_of(reader.sequence());
    if (place) page.add(walk.key(), *place);
    if (steps + 1 == kEntriesPerHold || page.entries.size() == wanted) page.position = std::string(walk.key());
  }
}

// Adds what the reader sees of `keys`, the first of which is number `first`.
template <class Records, class Meta>
template <class Container>
void VersionedIndex<Records, Meta>::find_group(const Part<Container>& part, const Readers::Reader& reader,
                                               std::span<const std::string_view> keys, std::size_t first,
                                               std::vector<Found>& found) const {
  if constexpr (FindsMany<Container>) {
    if (part.older.empty()) {
      std::array<std::optional<Place>, kEntriesPerHold> places;
      part.container.find_many(keys, std::span(places).first(keys.size()));
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (places[i] && reader.keys().contains(keys[i])) found.push_back({first + i, *places[i]});
      }
      return;
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::optional<Place> place = as_of(part, reader.sequence(), reader.keys(), keys[i]);
    if (place) found.push_back({first + i, std::move(*place)});
  }
}

template <class Records, class Meta>
template <class Container, class Ahead, class F>
void VersionedIndex<Records, Meta>::multi_find_in(const Part<Container>& part, Space space,
                                                  std::span<const std::string_view> keys, Ahead& ahead,
                                                  F& visit) const {
  constexpr std::size_t kVisitsAhead = 8;
  if (keys.empty()) return;
  const auto [low, high] = std::minmax_element(keys.begin(), keys.end());
  std::optional<Readers::Reader> reader;
  std::vector<Found> found;
  bool more = true;
  for (std::size_t next = 0; more && next < keys.size();) {
    found.clear();
    {
      const std::shared_lock lock(latch_);
      if (!reader) {
        reader.emplace(readers_, published_, space, visible(part, {std::string(*low), std::string(*high)}));
      }
      const auto group = keys.subspan(next, std::min(kEntriesPerHold, keys.size() - next));
      find_group(part, *reader, group, next, found);
      next += group.size();
    }
    for (std::size_t i = 0; i < std::min(kVisitsAhead, found.size()); ++i) ahead(found[i].place);
    for (std::size_t i = 0; more && i < found.size(); ++i) {
      if (i + kVisitsAhead < found.size()) ahead(found[i + kVisitsAhead].place);
      more = visit(found[i].index, found[i].place);
    }
  }
  reader.reset();
  forget_if_last();
}

// The last reader to leave forgets all older versions at once; freeing them is not the writer's work.
template <class Records, class Meta>
void VersionedIndex<Records, Meta>::forget_if_last() const {
  if (older_versions() == 0) return;
  Forgotten all;
  const std::unique_lock lock(latch_);
  const auto frozen = readers_.freeze();
  all = take_unneeded();
}

}  // namespace kvingest
