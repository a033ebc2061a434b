#include "storage/mmap/mmap_store.hpp"

#include <random>
#include <utility>

#include "base/check.hpp"
#include "kvingest/codec/fixed.hpp"
#include "storage/mmap/apply.hpp"

namespace kvingest::mmap_store {
namespace {

std::uint64_t random_id() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

// Removes the files that a crash left half made, or `all` where the store itself was left half made.
void remove_unfinished(const Posix& posix, const std::filesystem::path& dir, bool all) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    const std::filesystem::path name = at->path().filename();
    const bool unfinished = name.extension() == ".tmp" && segment_number(name.stem());
    if (unfinished || (all && segment_number(name))) posix.unlink(at->path().c_str());
  }
}

}  // namespace

// ---- opening and closing --------------------------------------------------------------------------------------------

Result<std::unique_ptr<Store>> MmapStore::open(const EngineContext& context, const Options& options) {
  if (!context.read_only) remove_unfinished(*context.posix, context.dir, context.fresh);
  auto files = list_segments(*context.posix, context.dir);
  KV_TRY(files);
  auto space = AddressSpace::reserve(*context.posix);
  KV_TRY(space);
  auto arena = NodeArena::reserve(BplusTree::kNodeBytes, options.index_bytes_max);
  KV_TRY(arena);
  const std::uint64_t id = files->empty() ? random_id() : files->front().header.store_id;
  std::unique_ptr<MmapStore> store(new MmapStore(context, options, std::move(*space), std::move(*arena), id));
  KV_TRY(store->recover(*files, context));
  return store;
}

MmapStore::MmapStore(const EngineContext& context, const Options& options, AddressSpace space, NodeArena arena,
                     std::uint64_t store_id)
    : space_(std::move(space)),
      view_(space_),
      home_{*context.posix, context.dir, store_id, space_, options.write_through_map && !context.read_only},
      options_(options),
      read_only_(context.read_only),
      supply_(home_, options.segment_bytes, ahead_),
      index_(BplusTree(view_, std::move(arena)), view_) {}

MmapStore::~MmapStore() {
  static_cast<void>(close());
}

// What recovery finds goes into the index directly: nobody reads yet.
class MmapStore::ReplayTarget {
 public:
  explicit ReplayTarget(MmapStore& store) : store_(store) {}

  void put(Space space, std::string_view key, RecordPlace place) {
    store_.count_record(place);
    replaced(space == Space::meta ? store_.index_.meta().put(key, place) : store_.index_.records().put(key, place));
  }
  void erase(Space space, std::string_view key) {
    replaced(space == Space::meta ? store_.index_.meta().erase(key) : store_.index_.records().erase(key));
  }
  void run(std::uint64_t first, std::uint32_t count, std::string_view values, Place payload) {
    store_.count_run(payload, count, values.size());
    if (store_.index_.records().takes_run(first, count)) {
      store_.index_.records().append_run(first, count, payload);
      return;
    }
    const auto done = for_each_in_run(first, count, values, payload, [&](std::uint64_t number, RecordPlace place) {
      char key[kSeqKeyBytes];
      codec::put_ordered(key, number);
      replaced(store_.index_.records().put(std::string_view(key, sizeof key), place));
    });
    if (!done && !damage_) damage_ = done.error();
  }
  Result<void> result() {
    if (damage_) return tl::unexpected<Error>(*damage_);
    return {};
  }

 private:
  void replaced(const std::optional<RecordPlace>& place) {
    if (place) store_.count_dead(*place);
  }

  MmapStore& store_;
  std::optional<Error> damage_;
};

Result<void> MmapStore::recover(const std::vector<SegmentFile>& files, const EngineContext& context) {
  const auto replay = [&](const FrameHeader&, std::string_view payload, Place at) -> Result<void> {
    if (!index_.records().tree().room_for(payload.size() / 3)) {  // The shortest put takes 4 bytes, a run's record 1.
      auto plan = plan_of(payload);
      KV_TRY(plan);
      if (!index_.records().tree().room_for(plan->tree_puts)) return index_full();
    }
    ReplayTarget target(*this);
    KV_TRY(apply_payload(payload, at, target));
    return target.result();
  };
  auto recovered = mmap_store::recover(home_, files, options_.segment_bytes, read_only_, replay);
  KV_TRY(recovered);
  torn_tail_ = recovered->torn_tail;
  if (!torn_tail_.empty()) context.notice(torn_tail_);
  index_.set_published(recovered->content.last_batch);
  const std::uint64_t next = recovered->content.segments.empty() ? 1 : recovered->content.segments.back()->number() + 1;
  if (recovered->prepared) {
    supply_.put_back(std::move(recovered->prepared));
  } else if (!read_only_) {
    supply_.prepare(next);
  }
  log_.emplace(home_, supply_, syncer_, std::move(recovered->content), read_only_);
  return {};
}

Result<void> MmapStore::close() {
  if (std::exchange(closed_, true)) return {};
  Result<void> done;
  if (!read_only_ && log_) done = log_->close();
  if (!read_only_) supply_.discard();
  ahead_.stop();
  syncer_.stop();
  return done;
}

// ---- writing --------------------------------------------------------------------------------------------------------

class MmapStore::BatchTarget {
 public:
  BatchTarget(MmapStore& store, Index::Update& update) : store_(store), update_(update) {}

  void put(Space space, std::string_view key, RecordPlace place) {
    store_.count_record(place);
    update_.put(space, key, place);
  }
  void erase(Space space, std::string_view key) { update_.erase(space, key); }
  void run(std::uint64_t first, std::uint32_t count, std::string_view values, Place payload) {
    store_.count_run(payload, count, values.size());
    char key[kSeqKeyBytes];
    codec::put_ordered(key, first);
    const bool one_entry = store_.index_.records().takes_run(first, count);
    if (!one_entry || !update_.unseen_from(Space::records, std::string_view(key, sizeof key))) {
      const auto done = for_each_in_run(first, count, values, payload, [&](std::uint64_t number, RecordPlace place) {
        codec::put_ordered(key, number);
        const std::string_view bytes(key, sizeof key);
        one_entry ? update_.note_new(Space::records, bytes) : update_.put(Space::records, bytes, place);
      });
      KV_ASSERT(done);  // plan_of() has walked it.
    }
    if (one_entry) store_.index_.records().append_run(first, count, payload);
  }

 private:
  MmapStore& store_;
  Index::Update& update_;
};

// Walks the batch before anything is written: what follows may not fail any more.
Result<MmapStore::Plan> MmapStore::plan_of(std::string_view batch) const {
  Plan plan;
  BatchReader reader(batch);
  BatchEntry entry;
  bool numbers = false;        // A single key that looks like a number may come to lie among those of a run.
  std::uint64_t runs_end = 0;  // Behind the runs of this batch.
  while (true) {
    auto more = reader.next(entry);
    KV_TRY(more);
    if (!*more) return plan;
    ++plan.operations;
    if (entry.kind == WriteBatch::Kind::put) {
      ++plan.tree_puts;
      numbers = numbers || entry.key.size() == kSeqKeyBytes;
    } else if (entry.kind == WriteBatch::Kind::run) {
      if (numbers || entry.first < runs_end || !index_.records().takes_run(entry.first, entry.count)) {
        plan.operations += entry.count;
        plan.tree_puts += entry.count;
      }
      runs_end = entry.first + entry.count;
    }
  }
}

Result<void> MmapStore::write(const WriteBatch& batch, Durability durability) {
  const std::string_view payload = batch.bytes();
  auto plan = plan_of(payload);
  KV_TRY(plan);
  if (plan->tree_puts > 0 && !index_.records().tree().room_for(plan->tree_puts)) return index_full();
  auto at = log_->append(FrameKind::batch, payload);
  KV_TRY(at);
  apply(payload, *at, plan->operations);
  if (durability == Durability::disk) return log_->sync();
  return {};
}

void MmapStore::apply(std::string_view payload, Place at, std::size_t operations) {
  {
    auto update = index_.update(log_->last_batch(), operations);
    BatchTarget target(*this, update);
    KV_ASSERT(apply_payload(payload, at, target));
    update.publish();
  }
  index_.release([this](RecordPlace place, std::uint64_t) { count_dead(place); });
  touch_ahead();
}

tl::unexpected<Error> MmapStore::index_full() const {
  return fail(Code::no_space,
              "the index of {} is full ({} bytes): erase records, or open the store with a larger index=",
              home_.dir.native(), options_.index_bytes_max);
}

void MmapStore::touch_ahead() {
  if (!index_.records().tree().wants_prefault() || touching_.exchange(true)) return;
  ahead_.post([this] {
    while (index_.records().tree().prefault()) {
    }
    touching_.store(false);
  });
}

void MmapStore::count_record(RecordPlace place) {
  Segment::Usage& usage = space_.owner(place.place())->usage();
  usage.records.fetch_add(1, std::memory_order_relaxed);
  usage.bytes.fetch_add(place.about_bytes(), std::memory_order_relaxed);
}

void MmapStore::count_run(Place payload, std::uint32_t count, std::size_t bytes) {
  Segment::Usage& usage = space_.owner(payload)->usage();
  usage.records.fetch_add(count, std::memory_order_relaxed);
  usage.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void MmapStore::count_dead(RecordPlace place) {
  Segment::Usage& usage = space_.owner(place.place())->usage();
  usage.dead_records.fetch_add(1, std::memory_order_relaxed);
  usage.dead_bytes.fetch_add(place.about_bytes(), std::memory_order_relaxed);
}

Result<void> MmapStore::sync() {
  return log_->sync();
}

Result<void> MmapStore::compact() {
  return {};
}

// ---- reading --------------------------------------------------------------------------------------------------------

tl::unexpected<Error> MmapStore::damaged(RecordPlace place) const {
  return fail(Code::corrupt, "{}: no sound record there, though the index names it", view_.describe(place.place()));
}

Result<bool> MmapStore::get(Space space, std::string_view key, ValueVisitor visit) const {
  RecordPlace place;
  if (!index_.find(space, key, [&](RecordPlace found) { place = found; })) return false;
  const auto record = view_.record(place);
  if (!record) return damaged(place);
  visit(record->value);
  return true;
}

Result<std::size_t> MmapStore::multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const {
  std::optional<RecordPlace> bad;
  std::size_t found = 0;
  index_.multi_find(Space::records, keys, [&](std::size_t index, RecordPlace place) {
    const auto record = view_.record(place);
    if (!record) {
      bad = place;
      return false;
    }
    ++found;
    visit(index, record->value);
    return true;
  });
  if (bad) return damaged(*bad);
  return found;
}

Result<std::size_t> MmapStore::scan(Space space, const Range& range, EntryVisitor visit) const {
  std::optional<RecordPlace> bad;
  const std::size_t visited = index_.scan(space, range, [&](std::string_view key, RecordPlace place) {
    const auto record = view_.record(place);
    if (!record) {
      bad = place;
      return false;
    }
    return visit(key, record->value);
  });
  if (bad) return damaged(*bad);
  return visited;
}

std::size_t MmapStore::index_bytes() const {
  return index_.inspect(
      [](const RecordIndex& records) { return records.tree().used_bytes() + records.runs().used_bytes(); });
}

void MmapStore::stats(StatVisitor visit) const {
  const Log::Totals totals = log_->totals();
  visit("records", index_.size(Space::records));
  visit("meta_entries", index_.size(Space::meta));
  visit("segments", totals.segments);
  visit("log_bytes", totals.log_bytes);
  visit("allocated_bytes", totals.allocated_bytes);
  visit("live_bytes", totals.record_bytes - totals.dead_bytes);
  visit("dead_bytes", totals.dead_bytes);
  visit("index_bytes", index_bytes());
  visit("index_bytes_max", options_.index_bytes_max);
  visit("older_versions", index_.older_versions());
  visit("last_frame", log_->last_frame());
  visit("synced_frame", log_->synced_to());
}

}  // namespace kvingest::mmap_store
