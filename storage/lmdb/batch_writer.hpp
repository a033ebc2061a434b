// batch_writer.hpp -- puts the operations of one batch into a write transaction, in the order that LMDB takes best.
//
// Keys that arrive in order and beyond the last key of the store go straight to the end of the tree (MDB_APPEND: no
// descent, full pages). From the first key that does not, the rest of the batch is gathered and put in key order, so
// that neighbours share one descent and one copied page; of equal keys the last operation alone is carried out. The two
// key spaces are independent: meta entries are applied as they come.
//
// Threads:  one at a time.
// Lifetime: the memory for sorting stays for the next batch; at most kSortedMax operations of 24 bytes.
#pragma once

#include <lmdb.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "kvingest/write_batch.hpp"
#include "storage/lmdb/reader_pool.hpp"

namespace kvingest::lmdb {

inline MDB_val to_val(std::string_view bytes) noexcept {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write through it.
}
inline std::string_view to_view(const MDB_val& value) noexcept {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

class BatchWriter {
 public:
  /// Applies `batch` within `txn`. Returns an LMDB code; after a failure the transaction can only be aborted.
  int apply(MDB_txn* txn, const Databases& databases, const WriteBatch& batch);

  /// Whether all records of the last batch went to the end of the tree.
  [[nodiscard]] bool appended() const noexcept { return in_order_; }

 private:
  enum class Action : std::uint8_t {
    put,
    erase,
    put_number,  // The key is the number in `prefix`: records of a run do not carry theirs.
  };
  struct Change {
    std::uint64_t
        prefix;        // The first 8 bytes of the key as a big-endian number, zero-filled: mostly all a compare needs.
    std::uint32_t at;  // Of the key, or of a numbered record's value, in the batch: later operations are further on.
    std::uint32_t value_bytes;
    std::uint32_t value_at;
    std::uint16_t key_bytes;
    Action action;
  };
  static_assert(sizeof(Change) == 24);
  static constexpr std::size_t kSortedMax = std::size_t{1} << 18;  // 6 MiB; a larger batch is sorted in pieces.
  static_assert(kBatchBytesMax <= UINT32_MAX);

  int apply_entry(const BatchEntry& entry);
  int apply_meta(const BatchEntry& entry);
  int apply_run(const BatchEntry& entry);
  int append(std::string_view key, std::string_view value);
  int gather(const Change& change);
  int flush();
  int flush_one(const Change& change);
  Change change_of(std::string_view key, std::string_view value, Action action) const noexcept;
  std::string_view key_of(const Change& change, char (&number)[kSeqKeyBytes]) const noexcept;
  bool before(const Change& a, const Change& b) const noexcept;
  bool same_key(const Change& a, const Change& b) const noexcept;

  MDB_txn* txn_ = nullptr;
  MDB_cursor* records_ = nullptr;
  MDB_dbi meta_ = 0;
  const char* batch_ = nullptr;  // Its first byte.
  bool in_order_ = true;         // No record operation has come yet that is not an append.
  bool at_end_ = true;           // flush(): the keys from here on may lie beyond the last one of the tree.
  std::vector<Change> changes_;
};

}  // namespace kvingest::lmdb
