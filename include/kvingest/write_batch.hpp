// kvingest/write_batch.hpp -- an ordered list of changes that a store applies all or none.
//
// A batch is one contiguous buffer. Its encoding is also the payload of a frame in our own log store, so that a record
// is encoded once, where it is cut from the socket, and not again. Integers are little-endian; varint is LEB128.
//
//   put         01  varint key bytes, varint value bytes, key, value
//   erase       02  varint key bytes, key
//   run         03  u32 count, u32 payload bytes, u64 first number, payload: count times (varint bytes, value)
//   put meta    04  like put, in the meta space
//   erase meta  05  like erase, in the meta space
//
// A run holds records that are keyed by consecutive arrival numbers, so none of them carries its key: record i has the
// 8-byte big-endian key first + i. Worked example: put("k", "v") and put_next("ab"), numbered from 7:
//
//   01 01 01 6B 76                                    put "k" = "v" (it takes number 7: every put takes one)
//   03 01 00 00 00 03 00 00 00 08 00 00 00 00 00 00 00  02 61 62    number 8 = "ab"
//
// Threads:  a value; one thread at a time.
// Lifetime: views handed out by a reader point into the batch and die with its next change.
// Errors:   a put beyond the limits marks the batch; Store::write() refuses a marked batch and says why.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/codec/byte_buffer.hpp"
#include "kvingest/codec/fixed.hpp"
#include "kvingest/codec/varint.hpp"
#include "kvingest/limits.hpp"
#include "kvingest/result.hpp"

namespace kvingest {

/// A store has two key spaces: what users put, and what kvingest keeps about it (progress of sources, rejects, schema).
enum class Space : std::uint8_t { records, meta };

class WriteBatch {
 public:
  enum class Kind : std::uint8_t { put = 1, erase = 2, run = 3, put_meta = 4, erase_meta = 5 };

  void put(std::string_view key, std::string_view value) { append_put(Kind::put, key, value), ++puts_; }
  void erase(std::string_view key) { append_erase(Kind::erase, key); }
  void put_meta(std::string_view key, std::string_view value) { append_put(Kind::put_meta, key, value); }
  void erase_meta(std::string_view key) { append_erase(Kind::erase_meta, key); }

  /// Puts `value` under the number that number() will give it. Such neighbours share one run.
  void put_next(std::string_view value);

  /// Puts `value` under a key whose 20 bytes at each of `holes` are to become the decimal digits of its number.
  void put_with_number(std::string_view key, const std::vector<std::uint32_t>& holes, std::string_view value);

  /// put() and put_next() of what is still to be made: they return where the caller writes, at once, `key_bytes` of the
  /// key and right behind them `value_bytes` of the value, so that neither is made elsewhere and copied. The sizes are
  /// within their limits.
  [[nodiscard]] char* put_in_place(std::size_t key_bytes, std::size_t value_bytes) {
    return ++puts_, open_put(Kind::put, key_bytes, value_bytes);
  }
  [[nodiscard]] char* put_next_in_place(std::size_t value_bytes);
  /// The 20 bytes at `at`, within the last put, are to become the decimal digits of its number.
  void number_here(const char* at) {
    holes_.push_back({static_cast<std::size_t>(at - bytes_.data()), puts_ - 1, true});
  }

  /// Gives every put the next number, in order: the first gets `first`. Returns the number after the last one.
  /// May be called again with another number, until the batch is written.
  std::uint64_t number(std::uint64_t first);

  /// Appends the operations of `other`, keeping the numbers it has been given.
  void append(const WriteBatch& other);

  /// Empties the batch and keeps its memory.
  void clear() noexcept;
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

  /// Puts into the record space, each of which takes one number.
  [[nodiscard]] std::uint64_t puts() const noexcept { return puts_; }
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  /// The encoded form, as described above.
  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_.view(); }
  /// Why no store may take this batch: the first key or value beyond its limit, or the whole too large.
  [[nodiscard]] Result<void> check() const;

 private:
  struct Hole {
    std::size_t offset;   // Of 20 digits in a key, or of the number field of a run.
    std::uint64_t index;  // Which put of this batch it belongs to.
    bool digits;
  };
  static constexpr std::size_t kRunHeaderBytes = 1 + 4 + 4 + 8;
  static constexpr std::size_t kNoRun = ~std::size_t{0};
  static constexpr std::size_t kRunBytesMax = std::size_t{64} << 20;  // Far below what u32 holds; one value fits.

  char* open_put(Kind kind, std::size_t key_bytes, std::size_t value_bytes);
  void append_put(Kind kind, std::string_view key, std::string_view value);
  void append_erase(Kind kind, std::string_view key);
  void open_run();
  void check_key(std::size_t bytes);
  void check_value(std::size_t bytes);

  codec::ByteBuffer bytes_;
  std::vector<Hole> holes_;
  std::uint64_t puts_ = 0;
  std::size_t run_ = kNoRun;  // Offset of the run that put_next() may extend.
  std::uint32_t run_count_ = 0;
  std::optional<Error> problem_;
};

/// One entry of an encoded batch, as it stands: a run is one entry.
struct BatchEntry {
  WriteBatch::Kind kind = WriteBatch::Kind::put;
  std::string_view key;     ///< Empty for a run.
  std::string_view value;   ///< The payload of a run; empty for an erase.
  std::uint64_t first = 0;  ///< Number of a run's first record.
  std::uint32_t count = 0;  ///< Records in a run, else 1.
  std::size_t offset = 0;   ///< Of the entry in the encoded bytes.

  [[nodiscard]] Space space() const noexcept {
    return kind >= WriteBatch::Kind::put_meta ? Space::meta : Space::records;
  }
};

/// Walks an encoded batch that may come from a damaged file: nothing is read outside `bytes`.
class BatchReader {
 public:
  explicit BatchReader(std::string_view bytes) noexcept : bytes_(bytes) {}

  /// Reads the next entry into `entry`; false at the end. Fails with: corrupt (the offset is in the text).
  Result<bool> next(BatchEntry& entry);

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

/// Walks the values of a run's payload.
class RunReader {
 public:
  explicit RunReader(std::string_view payload) noexcept : at_(payload.data()), end_(payload.data() + payload.size()) {}

  /// The next value; nullopt at the end or, where `payload` is damaged, at the damage: compare the count.
  [[nodiscard]] std::optional<std::string_view> next() noexcept {
    std::uint64_t bytes = 0;
    const char* value = codec::get_varint(at_, end_, bytes);
    if (value == nullptr || bytes > static_cast<std::uint64_t>(end_ - value)) return std::nullopt;
    at_ = value + bytes;
    return std::string_view(value, bytes);
  }
  /// Where the next record begins.
  [[nodiscard]] const char* position() const noexcept { return at_; }

 private:
  const char* at_;
  const char* end_;
};

/// One change, with the key of a run's record spelled out.
struct BatchOperation {
  Space space;
  bool erase;
  std::string_view key;
  std::string_view value;
};

/// Passes every operation of `batch` in order to `apply`, which returns Result<void>; stops at its first failure.
/// Fails with: corrupt (the encoding is damaged), and whatever `apply` fails with.
template <class Apply>
Result<void> for_each_operation(std::string_view batch, Apply&& apply) {
  BatchReader reader(batch);
  BatchEntry entry;
  while (true) {
    auto more = reader.next(entry);
    if (!more) return tl::unexpected<Error>(std::move(more).error());
    if (!*more) return {};
    if (entry.kind != WriteBatch::Kind::run) {
      const bool erase = entry.kind == WriteBatch::Kind::erase || entry.kind == WriteBatch::Kind::erase_meta;
      KV_TRY(apply(BatchOperation{entry.space(), erase, entry.key, entry.value}));
      continue;
    }
    RunReader values(entry.value);
    char key[kSeqKeyBytes];
    for (std::uint32_t i = 0; i < entry.count; ++i) {
      const auto value = values.next();
      if (!value) return fail(Code::corrupt, "batch: run at offset {} ends at record {}", entry.offset, i);
      codec::put_ordered(key, entry.first + i);
      KV_TRY(apply(BatchOperation{Space::records, false, std::string_view(key, sizeof key), *value}));
    }
  }
}

inline char* WriteBatch::put_next_in_place(std::size_t value_bytes) {
  if (run_ == kNoRun || bytes_.size() - run_ + value_bytes > kRunBytesMax) [[unlikely]]
    open_run();
  char* at = nullptr;
  if (value_bytes < 0x80) {  // One length byte: nearly every line of a feed.
    at = bytes_.extend(1 + value_bytes);
    *at++ = static_cast<char>(value_bytes);
  } else {
    at = bytes_.extend(codec::varint_size(value_bytes) + value_bytes);
    at = codec::put_varint(at, value_bytes);
  }
  codec::put_fixed(bytes_.data() + run_ + 1, ++run_count_);
  codec::put_fixed(bytes_.data() + run_ + 5, static_cast<std::uint32_t>(bytes_.size() - run_ - kRunHeaderBytes));
  ++puts_;
  return at;
}

inline void WriteBatch::put_next(std::string_view value) {
  codec::copy_short(put_next_in_place(value.size()), value.data(), value.size());
  if (value.size() > kValueBytesMax) [[unlikely]]
    check_value(value.size());
}

}  // namespace kvingest
