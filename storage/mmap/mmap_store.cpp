#include "storage/mmap/mmap_store.hpp"

#include <algorithm>
#include <mutex>
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
  const std::filesystem::path list = segment_list_path(dir).filename();
  const std::filesystem::path index = checkpoint_path(dir).filename();
  std::error_code error;
  for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    const std::filesystem::path name = at->path().filename();
    const bool unfinished =
        name.extension() == ".tmp" && (segment_number(name.stem()) || name.stem() == list || name.stem() == index);
    if (unfinished || (all && (segment_number(name) || name == list || name == index)))
      posix.unlink(at->path().c_str());
  }
}

constexpr std::uint64_t kGatherBytesMin = std::uint64_t{1} << 20;
constexpr std::uint64_t kGatheredShare = 8;  // An operation has 4 bytes at least, and takes 24 where it is gathered.

// How often the space that is left is held against what compaction has to move.
constexpr std::uint64_t kLooksPerSegment = 16;

// The file at an address in the address space `of`.
const char* describe_address(const void* of, const void* address) {
  const auto& space = *static_cast<const AddressSpace*>(of);
  const Segment* const segment = space.owner(static_cast<Place>(static_cast<const char*>(address) - space.at(0)));
  return segment == nullptr ? "a segment of the log" : segment->path().c_str();
}

// How many hundredths `of` is of `whole`; 100 where there is nothing.
std::uint64_t percent(std::uint64_t of, std::uint64_t whole) {
  return whole == 0 ? 100 : of * 100 / whole;
}

Result<void> check_run(std::uint64_t first, std::uint32_t count) {
  if (RunTable::countable(first, count)) return {};
  return fail(Code::invalid_argument, "a run of {} records numbered from {}: there are no such numbers", count, first);
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
  const std::uint64_t id = files->segments.empty() ? random_id() : files->segments.front().header.store_id;
  std::unique_ptr<MmapStore> store(new MmapStore(context, options, std::move(*space), std::move(*arena), id));
  KV_TRY(store->recover(*files, context));
  if (!context.read_only) {
    for (const auto& path : files->left_over) context.posix->unlink(path.c_str());  // What stays is ignored again.
    store->start_helpers();
  }
  return store;
}

MmapStore::MmapStore(const EngineContext& context, const Options& options, AddressSpace space, NodeArena arena,
                     std::uint64_t store_id)
    : space_(std::move(space)),
      watched_(space_.at(0), space_.bytes(), describe_address, &space_),
      view_(space_),
      accounts_(space_),
      home_{*context.posix, context.dir, store_id, space_, options.write_through_map && !context.read_only},
      options_(options),
      read_only_(context.read_only),
      supply_(home_, options.segment_bytes, ahead_),
      index_(BplusTree(view_, std::move(arena)), view_) {}

MmapStore::~MmapStore() {
  static_cast<void>(close());
}

// Segments whose frames are read before they are applied: what is gathered of them takes a fifth of that where records
// have some hundred bytes, and at most the memory that the index may take.
std::uint64_t gather_bytes(const Options& options) {
  return std::max(kGatherBytesMin, options.index_bytes_max / kGatheredShare);
}

Result<void> MmapStore::recover(const LogFiles& files, const EngineContext& context) {
  std::uint64_t log_bytes = 0;
  for (const SegmentFile& file : files.segments) log_bytes += file.bytes;
  auto pool = ThreadPool::start(
      {.workers = files.segments.size() > 1 ? ThreadPool::kOtherCpus : 0, .pinned = false, .name = "kv-mmap-open"});
  KV_TRY(pool);
  const std::optional<Checkpoint> checkpoint = find_checkpoint(files, context);
  const auto load = [&](std::span<const std::unique_ptr<Segment>> segments) {
    return checkpoint ? load_checkpoint(*checkpoint, **pool, segments, context) : nullptr;
  };
  OpeningProgress progress(context.notice, fmt::format("opening {}", context.dir.native()), log_bytes);
  Replay replay(view_, index_, accounts_, [this] { return index_full().value(); });
  auto recovered = mmap_store::recover({.home = home_,
                                        .files = files,
                                        .segment_bytes = options_.segment_bytes,
                                        .read_only = read_only_,
                                        .gather_bytes = gather_bytes(options_),
                                        .pool = **pool,
                                        .progress = progress,
                                        .load = load,
                                        .replay = replay});
  KV_TRY(recovered);
  KV_TRY(check_search());
  torn_tail_ = recovered->torn_tail;
  if (!torn_tail_.empty()) context.notice(torn_tail_);
  index_.set_published(recovered->content.last_batch);
  if (recovered->prepared) supply_.put_back(std::move(recovered->prepared));
  log_.emplace(home_, supply_, syncer_, std::move(recovered->content), read_only_);
  return {};
}

// A checkpoint that cannot be used is none: the log has all that it has.
std::optional<Checkpoint> MmapStore::find_checkpoint(const LogFiles& files, const EngineContext& context) {
  auto found = Checkpoint::open(*context.posix, context.dir);
  if (found && !*found) return std::nullopt;
  Result<void> usable;
  if (found) usable = (*found)->check_belongs_to(files);
  if (found && usable) return std::move(*found);
  context.notice(fmt::format("the checkpoint of the index is not used, the whole log is read: {}",
                             found ? usable.error().text : found.error().text));
  return std::nullopt;
}

const CheckpointTable* MmapStore::load_checkpoint(const Checkpoint& checkpoint, ThreadPool& pool,
                                                  std::span<const std::unique_ptr<Segment>> segments,
                                                  const EngineContext& context) {
  const auto loaded = checkpoint.load(pool, segments, index_.records(), index_.meta());
  if (loaded) return &checkpoint.table();
  context.notice(
      fmt::format("the checkpoint of the index is not used, the whole log is read: {}", loaded.error().text));
  index_.records().clear();
  index_.meta().clear();
  for (const auto& segment : segments) segment->usage().all_dead(0, 0, 0);
  return nullptr;
}

void MmapStore::start_helpers() {
  checkpointer_.emplace(CheckpointWriter(home_, *log_, index_, turns_), *log_, options_.checkpoint_bytes);
  compactor_.emplace(Compactor::Store{home_, *log_, supply_, index_, view_, accounts_, turns_}, options_.segment_bytes,
                     options_.compact_bytes_per_second);
  next_number_ = log_->next_number();
  compactor_->look();
}

Result<void> MmapStore::close() {
  if (std::exchange(closed_, true)) return {};
  if (checkpointer_) checkpointer_->stop();
  if (compactor_) compactor_->stop();
  Result<void> done;
  if (!read_only_ && log_) done = log_->close();
  if (checkpointer_ && done) checkpointer_->write_at_close();
  if (!read_only_) supply_.discard();
  ahead_.stop();
  syncer_.stop();
  return done;
}

// ---- writing --------------------------------------------------------------------------------------------------------

class MmapStore::BatchTarget {
 public:
  BatchTarget(MmapStore& store, Index::Update& update)
      : accounts_(store.accounts_), records_(store.index_.records()), update_(update) {}

  void put(Space space, std::string_view key, RecordPlace place) {
    accounts_.record(place);
    update_.put(space, key, place);
  }
  void erase(Space space, std::string_view key, Place at, std::size_t bytes) {
    accounts_.erasure(at, bytes);
    update_.erase(space, key);
  }
  void run(std::uint64_t first, std::uint32_t count, std::string_view values, Place payload) {
    accounts_.run(payload, count, values.size());
    char bytes[kSeqKeyBytes];
    codec::put_ordered(bytes, first);
    const std::string_view key(bytes, sizeof bytes);
    const bool touches = records_.touches(first, count);
    if (touches || !update_.unseen_from(Space::records, key)) {
      for (std::uint32_t i = 0; i < count; ++i) {
        codec::put_ordered(bytes, first + i);
        update_.note(Space::records, key, touches ? records_.erase(key) : std::nullopt);
      }
    }
    records_.insert_run(first, count, payload, values.size());
  }

 private:
  const Accounts& accounts_;
  RecordIndex& records_;
  Index::Update& update_;
};

// Walks a batch before anything is written: what follows may not fail any more.
Result<MmapStore::Plan> MmapStore::plan_of(std::string_view batch) const {
  Plan plan;
  BatchReader reader(batch);
  BatchEntry entry;
  while (true) {
    auto more = reader.next(entry);
    KV_TRY(more);
    if (!*more) return plan;
    ++plan.operations;
    if (entry.kind == WriteBatch::Kind::put) ++plan.tree_puts;
    if (entry.kind != WriteBatch::Kind::run) continue;
    KV_TRY(check_run(entry.first, entry.count));
    if (index_.records().touches(entry.first, entry.count)) plan.operations += entry.count;
  }
}

Result<void> MmapStore::write(const WriteBatch& batch, Durability durability) {
  const std::string_view payload = batch.bytes();
  {
    std::unique_lock turn(turns_);
    if (must_wait_for_space(payload.size())) {
      turn.unlock();
      compactor_->wait_for_space();
      turn.lock();
    }
    auto plan = plan_of(payload);
    KV_TRY(plan);
    if (plan->tree_puts > 0 && !index_.records().tree().room_for(plan->tree_puts)) return index_full();
    KV_TRY(check_search());
    auto at = log_->append(FrameKind::batch, payload);
    KV_TRY(at);
    apply(payload, *at, plan->operations);
    if (const auto damage = view_.damage()) {
      return fail(Code::failed, "the batch is in the log, but the index went wrong over damage: {}", damage->text);
    }
  }
  checkpointer_->look();
  batch_bytes_.fetch_add(payload.size(), std::memory_order_relaxed);
  if (durability == Durability::disk) return log_->sync();
  return {};
}

// Whether the next segment has to wait for compaction. It does so also, once in each segment, when the rest of the
// newest has no room for what compaction has to move: in a small store the segment that would be made for that is one
// too many.
bool MmapStore::must_wait_for_space(std::size_t bytes) {
  const std::uint64_t stride = options_.segment_bytes / kLooksPerSegment;
  const bool needs_segment = log_->needs_segment(bytes);
  if (!needs_segment) {
    unlooked_bytes_ += bytes;
    if (waited_in_ == log_->next_number() || unlooked_bytes_ < stride) return false;
    unlooked_bytes_ = 0;
    const std::uint64_t moving = compactor_->bytes_to_move();
    if (moving == 0 || !log_->needs_segment(bytes + moving + stride)) return false;
  }
  if (!compactor_->over_budget()) return false;
  waited_in_ = log_->next_number();
  return true;
}

void MmapStore::apply(std::string_view payload, Place at, std::size_t operations) {
  {
    auto update = index_.update(log_->last_batch(), operations);
    BatchTarget target(*this, update);
    KV_ASSERT(apply_payload(payload, at, target));
    update.publish();
  }
  index_.release([this](RecordPlace place, std::uint64_t) {
    accounts_.dead(place);
    dead_bytes_ += place.about_bytes();
  });
  look_for_dead();
  touch_ahead();
}

// Compaction has a look when there is a new segment, and when enough has died to make a difference.
void MmapStore::look_for_dead() {
  const bool new_segment = std::exchange(next_number_, log_->next_number()) != log_->next_number();
  if (!new_segment && dead_bytes_ < options_.segment_bytes / 4 && !compactor_->has_empty()) return;
  dead_bytes_ = 0;
  compactor_->look();
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

Result<void> MmapStore::sync() {
  return log_->sync();
}

Result<void> MmapStore::compact() {
  return compactor_->compact_all();
}

// ---- reading --------------------------------------------------------------------------------------------------------

tl::unexpected<Error> MmapStore::damaged(RecordPlace place) const {
  KV_TRY(check_search());
  return fail(Code::corrupt, "{}: no sound record there, though the index names it", view_.describe(place.place()));
}

// Whether what was looked up and not found is not there: keys are told apart by those in the log.
Result<void> MmapStore::check_search() const {
  if (auto damage = view_.damage()) return tl::unexpected<Error>(std::move(*damage));
  return {};
}

Result<bool> MmapStore::get(Space space, std::string_view key, ValueVisitor visit) const {
  std::optional<RecordPlace> bad;
  // Pinned: compaction drops no segment that a place in hand is in.
  const bool found = index_.find_pinned(space, key, [&](RecordPlace place) {
    if (const auto record = view_.record(place)) {
      visit(record->value);
    } else {
      bad = place;
    }
  });
  if (bad) return damaged(*bad);
  if (!found) KV_TRY(check_search());
  return found;
}

Result<std::size_t> MmapStore::multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const {
  std::optional<RecordPlace> bad;
  std::size_t found = 0;
  const auto ahead = [this](RecordPlace place) { view_.prefetch(place); };
  index_.multi_find(Space::records, keys, ahead, [&](std::size_t index, RecordPlace place) {
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
  if (found < keys.size()) KV_TRY(check_search());
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
  KV_TRY(check_search());
  return visited;
}

std::size_t MmapStore::index_bytes() const {
  return index_.inspect([](const RecordIndex& records, const MetaIndex& /*meta*/) {
    return records.tree().used_bytes() + records.runs().used_bytes();
  });
}

void MmapStore::stats(StatVisitor visit) const {
  const Log::Totals totals = log_->totals();
  visit("records", index_.size(Space::records));
  visit("meta_entries", index_.size(Space::meta));
  visit("segments", totals.segments);
  visit("log_bytes", totals.log_bytes);
  visit("allocated_bytes", totals.allocated_bytes);
  visit("live_bytes", totals.live_bytes);
  visit("dead_bytes", totals.log_bytes - std::min(totals.live_bytes, totals.log_bytes));
  visit("space_amplification_percent", percent(totals.log_bytes, totals.live_bytes));
  if (compactor_) {
    const std::uint64_t batches = batch_bytes_.load(std::memory_order_relaxed);
    visit("compacted_segments", compactor_->dropped_segments());
    visit("compaction_moved_bytes", compactor_->moved_bytes());
    visit("write_amplification_percent", percent(batches + compactor_->moved_bytes(), batches));
  }
  visit("index_bytes", index_bytes());
  visit("index_bytes_max", options_.index_bytes_max);
  visit("older_versions", index_.older_versions());
  visit("bytes_behind_checkpoint", checkpointer_ ? checkpointer_->behind_bytes() : log_->bytes_behind_checkpoint());
  if (checkpointer_) {
    visit("checkpoints", checkpointer_->written());
    visit("checkpoint_failures", checkpointer_->failures());
    visit("checkpoint_bytes", checkpointer_->file_bytes());
  }
  visit("last_frame", log_->last_frame());
  visit("synced_frame", log_->synced_to());
}

}  // namespace kvingest::mmap_store
