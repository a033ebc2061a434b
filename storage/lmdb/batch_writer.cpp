#include "storage/lmdb/batch_writer.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace kvingest::lmdb {
namespace {

std::uint64_t prefix_of(std::string_view key) noexcept {
  if (key.size() >= sizeof(std::uint64_t)) return codec::get_ordered<std::uint64_t>(key.data());
  char filled[sizeof(std::uint64_t)] = {};
  std::memcpy(filled, key.data(), key.size());
  return codec::get_ordered<std::uint64_t>(filled);
}

}  // namespace

int BatchWriter::apply(MDB_txn* txn, const Databases& databases, const WriteBatch& batch) {
  txn_ = txn;
  meta_ = databases.meta;
  batch_ = batch.bytes().data();
  in_order_ = true;
  changes_.clear();
  // The transaction closes its cursors when it ends.
  if (const int rc = mdb_cursor_open(txn, databases.records, &records_)) return rc;
  BatchReader reader(batch.bytes());
  BatchEntry entry;
  while (true) {
    const auto more = reader.next(entry);
    KV_ASSERT(more.has_value());  // The batch was encoded in this process.
    if (!*more) return flush();
    if (const int rc = apply_entry(entry)) return rc;
  }
}

int BatchWriter::apply_entry(const BatchEntry& entry) {
  switch (entry.kind) {
    case WriteBatch::Kind::put:
      if (!in_order_) return gather(change_of(entry.key, entry.value, Action::put));
      if (const int rc = append(entry.key, entry.value); rc != MDB_KEYEXIST) return rc;
      in_order_ = false;
      return gather(change_of(entry.key, entry.value, Action::put));
    case WriteBatch::Kind::erase:
      in_order_ = false;
      return gather(change_of(entry.key, {}, Action::erase));
    case WriteBatch::Kind::run:
      return apply_run(entry);
    case WriteBatch::Kind::put_meta:
    case WriteBatch::Kind::erase_meta:
      break;
  }
  return apply_meta(entry);
}

int BatchWriter::apply_meta(const BatchEntry& entry) {
  MDB_val key = to_val(entry.key);
  if (entry.kind == WriteBatch::Kind::erase_meta) {
    const int rc = mdb_del(txn_, meta_, &key, nullptr);
    return rc == MDB_NOTFOUND ? MDB_SUCCESS : rc;
  }
  MDB_val value = to_val(entry.value);
  return mdb_put(txn_, meta_, &key, &value, 0);
}

int BatchWriter::apply_run(const BatchEntry& entry) {
  RunReader values(entry.value);
  char key[kSeqKeyBytes];
  for (std::uint32_t i = 0; i < entry.count; ++i) {
    const auto value = values.next();
    KV_ASSERT(value.has_value());
    const std::uint64_t number = entry.first + i;
    if (in_order_) {
      codec::put_ordered(key, number);
      const int rc = append(std::string_view(key, sizeof key), *value);
      if (rc == MDB_SUCCESS) continue;
      if (rc != MDB_KEYEXIST) return rc;
      in_order_ = false;
    }
    const auto at = static_cast<std::uint32_t>(value->data() - batch_);
    const auto bytes = static_cast<std::uint32_t>(value->size());
    if (const int rc = gather({number, at, bytes, at, kSeqKeyBytes, Action::put_number})) return rc;
  }
  return MDB_SUCCESS;
}

int BatchWriter::append(std::string_view key, std::string_view value) {
  MDB_val k = to_val(key);
  MDB_val v = to_val(value);
  return mdb_cursor_put(records_, &k, &v, MDB_APPEND);  // MDB_KEYEXIST: not beyond the last key; nothing was done.
}

BatchWriter::Change BatchWriter::change_of(std::string_view key, std::string_view value, Action action) const noexcept {
  return {prefix_of(key),
          static_cast<std::uint32_t>(key.data() - batch_),
          static_cast<std::uint32_t>(value.size()),
          static_cast<std::uint32_t>(key.data() - batch_ + static_cast<std::ptrdiff_t>(key.size())),
          static_cast<std::uint16_t>(key.size()),
          action};
}

int BatchWriter::gather(const Change& change) {
  changes_.push_back(change);
  return changes_.size() < kSortedMax ? MDB_SUCCESS : flush();
}

std::string_view BatchWriter::key_of(const Change& change, char (&number)[kSeqKeyBytes]) const noexcept {
  if (change.action != Action::put_number) return {batch_ + change.at, change.key_bytes};
  codec::put_ordered(number, change.prefix);
  return {number, sizeof number};
}

bool BatchWriter::same_key(const Change& a, const Change& b) const noexcept {
  if (a.prefix != b.prefix || a.key_bytes != b.key_bytes) return false;
  if (a.key_bytes <= sizeof a.prefix) return true;
  return std::memcmp(batch_ + a.at, batch_ + b.at, a.key_bytes) == 0;
}

bool BatchWriter::before(const Change& a, const Change& b) const noexcept {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  char number_a[kSeqKeyBytes];
  char number_b[kSeqKeyBytes];
  const int order = key_of(a, number_a).compare(key_of(b, number_b));
  return order != 0 ? order < 0 : a.at < b.at;
}

int BatchWriter::flush() {
  std::sort(changes_.begin(), changes_.end(), [this](const Change& a, const Change& b) { return before(a, b); });
  at_end_ = true;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const bool superseded = i + 1 < changes_.size() && same_key(changes_[i], changes_[i + 1]);
    if (superseded) continue;
    if (const int rc = flush_one(changes_[i])) return rc;
  }
  changes_.clear();
  return MDB_SUCCESS;
}

int BatchWriter::flush_one(const Change& change) {
  char number[kSeqKeyBytes];
  const std::string_view key = key_of(change, number);
  MDB_val k = to_val(key);
  if (change.action == Action::erase) {
    const int rc = mdb_cursor_get(records_, &k, nullptr, MDB_SET);
    if (rc == MDB_NOTFOUND) return MDB_SUCCESS;
    return rc != MDB_SUCCESS ? rc : mdb_cursor_del(records_, 0);
  }
  const std::string_view value(batch_ + change.value_at, change.value_bytes);
  if (at_end_) {
    const int rc = append(key, value);
    if (rc != MDB_KEYEXIST) return rc;
    at_end_ = false;
  }
  MDB_val v = to_val(value);
  return mdb_cursor_put(records_, &k, &v, 0);
}

}  // namespace kvingest::lmdb
