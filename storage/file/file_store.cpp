#include "storage/file/file_store.hpp"

#include <utility>

#include "base/check.hpp"
#include "storage/file/backup.hpp"
#include "storage/file/record_reader.hpp"

namespace kvingest::slots {

FileStore::FileStore(const Posix& posix, bool read_only, SlotFile file, Recovered recovered)
    : posix_(posix),
      read_only_(read_only),
      geometry_(recovered.header.geometry),
      torn_tail_(recovered.torn_tail.empty() ? recovered.remark : recovered.torn_tail),
      file_(std::move(file)),
      index_(std::move(recovered.records)),
      writer_(file_, recovered),
      last_batch_(recovered.last_batch) {
  for (auto entry = recovered.meta.first(); entry.valid(); entry.next()) {
    index_.meta().put(entry.key(), entry.place());
  }
  if (recovered.last_batch > 0) index_.update(recovered.last_batch, 0).publish();
  show();
}

FileStore::~FileStore() {
  if (changed_) static_cast<void>(close());
}

Result<void> FileStore::write(const WriteBatch& batch, Durability durability) {
  KV_TRY(check_writable());
  KV_TRY(prepare());
  const auto places = writer_.commit(batch);
  if (!places && places.error().code == Code::failed) return latched(places.error());
  KV_TRY(places);
  apply(batch, *places);
  if (durability == Durability::disk) KV_TRY(sync_now());
  show();
  return {};
}

Result<void> FileStore::check_writable() const {
  if (failed_) return tl::unexpected<Error>(*failed_);
  if (read_only_) return fail(Code::invalid_argument, "{} is opened for reading only", file_.path().native());
  return {};
}

// Everything that may fail without a doubt about the next batch.
Result<void> FileStore::prepare() {
  changed_ = true;
  if (!writer_.settled()) {
    const auto settled = writer_.settle(live());
    if (!settled && settled.error().code != Code::no_space) return latched(settled.error());
    KV_TRY(settled);
  }
  if (writer_.wants_sync(live())) {
    KV_TRY(sync_now());
    ++self_syncs_;
  }
  if (writer_.may_clear()) KV_TRY(clear_waiting());
  return {};
}

void FileStore::apply(const WriteBatch& batch, std::span<const Place> places) {
  const std::uint64_t number = writer_.committed();
  auto update = index_.update(number, places.size());
  auto place = places.begin();
  const auto applied = for_each_operation(batch.bytes(), [&](const BatchOperation& operation) -> Result<void> {
    if (operation.erase) {
      update.erase(operation.space, operation.key);
      update.retire(*place);  // Behind what it erased: a tombstone goes last.
    } else {
      update.put(operation.space, operation.key, *place);
    }
    ++place;
    return {};
  });
  KV_ASSERT(applied.has_value());                    // The same bytes were read when the slots were written.
  if (place != places.end()) update.retire(*place);  // The mark of an empty batch.
  update.publish();
  last_batch_.store(number);
  index_.release([this](const Place& needless, std::uint64_t until) { writer_.release(needless, until); });
}

// Fails with: failed.
Result<void> FileStore::sync_now() {
  if (const auto synced = writer_.sync(live()); !synced) return latched(synced.error());
  return {};
}

tl::unexpected<Error> FileStore::latched(Error error) {
  error.code = Code::failed;
  error.text += "; what is on disk is unknown since then: reopen the store";
  failed_ = error;
  return tl::unexpected<Error>(std::move(error));
}

Result<void> FileStore::clear_waiting() {
  index_.release([this](const Place& needless, std::uint64_t until) { writer_.release(needless, until); });
  if (backups_.load() > 0) return {};
  return writer_.clear_waiting();
}

Result<bool> FileStore::get(Space space, std::string_view key, ValueVisitor visit) const {
  std::optional<Error> problem;
  const bool found = index_.find_pinned(space, key, [&](const Place& place) {
    RecordReader reader(file_, geometry_);
    auto value = reader.read(space, key, place);
    if (value) {
      visit(*value);
    } else {
      problem = std::move(value).error();
    }
  });
  if (problem) return tl::unexpected<Error>(*std::move(problem));
  return found;
}

Result<std::size_t> FileStore::multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const {
  std::optional<Error> problem;
  std::size_t found = 0;
  RecordReader reader(file_, geometry_);
  index_.multi_find(Space::records, keys, [&](std::size_t index, const Place& place) {
    auto value = reader.read(Space::records, keys[index], place);
    if (!value) {
      problem = std::move(value).error();
      return false;
    }
    visit(index, *value);
    ++found;
    return true;
  });
  if (problem) return tl::unexpected<Error>(*std::move(problem));
  return found;
}

Result<std::size_t> FileStore::scan(Space space, const Range& range, EntryVisitor visit) const {
  std::optional<Error> problem;
  RecordReader reader(file_, geometry_);
  const std::size_t visited = index_.scan(space, range, [&](std::string_view key, const Place& place) {
    auto value = reader.read(space, key, place);
    if (value) return visit(key, *value);
    problem = std::move(value).error();
    return false;
  });
  if (problem) return tl::unexpected<Error>(*std::move(problem));
  return visited;
}

Result<void> FileStore::sync() {
  KV_TRY(check_writable());
  if (writer_.settled() && writer_.synced() == writer_.committed()) return {};
  changed_ = true;
  if (auto synced = sync_now(); !synced) {
    synced.error().code = Code::io_error;
    return synced;
  }
  show();
  return {};
}

// Reads every live record in the order of keys and names the first damaged place in the order of the file.
Result<VerifyReport> FileStore::verify() const {
  VerifyReport report{.torn_tail = torn_tail_};
  std::optional<std::pair<std::uint64_t, Error>> first;
  std::uint64_t damaged = 0;
  for (const Space space : {Space::records, Space::meta}) {
    RecordReader reader(file_, geometry_);  // For each scan, so that it reads nothing from before the scan began.
    index_.scan(space, Range{}, [&](std::string_view key, const Place& place) {
      auto value = reader.read(space, key, place);
      if (!value) {
        ++damaged;
        if (!first || place.slot < first->first) first = {place.slot, std::move(value).error()};
        return true;
      }
      if (space == Space::records) ++report.records;
      report.bytes_checked += kRecordHeadBytes + key.size() + value->size();
      return true;
    });
  }
  if (!first) return report;
  if (damaged > 1) first->second.text += fmt::format("; {} records are damaged", damaged);
  return tl::unexpected<Error>(std::move(first->second));
}

Result<void> FileStore::compact() {
  KV_TRY(check_writable());
  KV_TRY(prepare());
  // What was replaced is cleared after the first sync, the tombstones after the second, when the clearing is on disk.
  for (int i = 0; i < 2; ++i) {
    KV_TRY(sync_now());
    KV_TRY(clear_waiting());
  }
  KV_TRY(writer_.trim());
  show();
  return {};
}

Result<void> FileStore::backup(const std::filesystem::path& to) const {
  struct Running {
    explicit Running(std::atomic<int>& count) : running(count) { ++running; }
    ~Running() { --running; }
    std::atomic<int>& running;
  };
  // First nothing is cleared any more, then the batch is chosen: all that is needed as of that batch stays.
  const Running running(backups_);
  const Shown now = shown();
  return copy_slots(posix_, file_, geometry_, now.batch, now.live, to);
}

Result<void> FileStore::close() {
  if (!changed_ || failed_) {
    file_.close();
    if (changed_ && failed_) return tl::unexpected<Error>(*failed_);
    return {};
  }
  changed_ = false;
  Result<void> done;
  if (writer_.synced() != writer_.committed()) done = sync_now();
  if (done) done = clear_waiting();
  file_.close();
  return done;
}

void FileStore::show() {
  const std::lock_guard lock(shown_mutex_);
  shown_ = {.batch = writer_.committed(),
            .synced = writer_.synced(),
            .live = live(),
            .index_bytes = index_.records().memory_bytes() + index_.meta().memory_bytes(),
            .waiting_slots = writer_.space().waiting_slots() + index_.retired_places(),
            .free_slots = writer_.space().free_slots(),
            .end = writer_.space().end(),
            .syncs = writer_.syncs(),
            .self_syncs = self_syncs_};
}

FileStore::Shown FileStore::shown() const {
  const std::lock_guard lock(shown_mutex_);
  return shown_;
}

void FileStore::stats(StatVisitor visit) const {
  const Shown now = shown();
  const std::uint64_t slot_bytes = geometry_.slot_bytes;
  visit("records", index_.size(Space::records));
  visit("meta_entries", index_.size(Space::meta));
  visit("slot_bytes", slot_bytes);
  visit("live_slots", now.live.slots);
  visit("waiting_slots", now.waiting_slots);
  visit("free_slots", now.free_slots);
  visit("live_bytes", now.live.slots * slot_bytes);
  visit("dead_bytes", (now.end - now.live.slots) * slot_bytes);
  visit("file_bytes", geometry_.offset(now.end));
  visit("index_bytes", now.index_bytes);
  visit("older_versions", index_.older_versions());
  visit("last_batch", now.batch);
  visit("synced_batch", now.synced);
  visit("syncs", now.syncs);
  visit("self_syncs", now.self_syncs);
}

}  // namespace kvingest::slots
