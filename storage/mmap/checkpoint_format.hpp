// checkpoint_format.hpp -- the bytes of the file INDEX: the index of a store as it was, so that opening it need not
// read the whole log. storage/FORMAT.md, section "mmap", has a worked example.
//
//   header, 96 bytes                                 then blocks, each of keys, of runs, or of meta entries,
//    0  8  magic "kvindex\n"                         and the table: 104 bytes a segment, 40 bytes a block
//    8  4  version
//   12  4  bytes of this header (96)                 block, 40 bytes of the table
//   16  8  id of the store                            0  8  offset in the file
//   24  8  frame: the log up to it is in here         8  4  bytes
//   32  8  number of the last batch there            12  4  1 keys, 2 runs, 3 meta entries
//   40  8  synced_to: the log up to it is on disk    16  4  entries
//   48  8  offset of the table                       20  4  leaves of the tree; 0 but for keys
//   56  4  segments                                  24  8  XXH3 of its bytes
//   60  4  blocks                                    32  8  zero
//   64  8  1 if frame `frame` is a mark
//   72  8  zero
//   80  8  XXH3 of the table
//   88  8  XXH3 of bytes 0 to 87
//
// A place in a block is one of the address space of whoever wrote the file; the table of segments says which segment
// lay where. Blocks are independent of each other, so that threads may share them out.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/index/bplus_tree.hpp"
#include "storage/mmap/run_table.hpp"

namespace kvingest::mmap_store {

inline constexpr std::uint32_t kCheckpointVersion = 1;
inline constexpr std::size_t kCheckpointHeaderBytes = 96;

enum class BlockKind : std::uint32_t { keys = 1, runs = 2, meta = 3 };

struct CheckpointBlock {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  BlockKind kind = BlockKind::keys;
  std::uint32_t entries = 0;
  std::uint32_t leaves = 0;
  std::uint64_t checksum = 0;
};

/// A segment as it was when the checkpoint was begun.
struct CheckpointSegment {
  std::uint64_t number = 0;
  std::uint64_t seed = 0;
  Place base = 0;
  std::uint64_t place_end = 0;  ///< Offset behind which no place in the blocks lies.
  std::uint64_t end = 0;        ///< Offset behind its last frame. Those are in the checkpoint, later ones need not be.
  std::uint64_t frames_before = 0;
  std::uint64_t batches_before = 0;
  std::uint64_t last_frame = 0;     ///< Number of its last frame, 0 if it has none,
  std::uint64_t last_batch = 0;     ///< the batch that says,
  std::uint64_t commit = 0;         ///< and that frame's checksum.
  std::uint64_t records = 0;        ///< All it holds, dead or not,
  std::uint64_t bytes = 0;          ///< what they take,
  std::uint64_t erasure_bytes = 0;  ///< and what erasures do.
};

struct CheckpointTable {
  std::uint64_t store_id = 0;
  std::uint64_t frame = 0;
  std::uint64_t batch = 0;
  std::uint64_t synced_to = 0;
  bool ends_in_mark = false;
  std::vector<CheckpointSegment> segments;  ///< By rising numbers.
  std::vector<CheckpointBlock> blocks;

  /// Null when it does not know the segment.
  [[nodiscard]] const CheckpointSegment* find(std::uint64_t number) const noexcept;
};

/// The table's bytes, which stand at `offset`, and the header that goes with them.
[[nodiscard]] std::string encode_table(const CheckpointTable& table);
[[nodiscard]] std::string encode_header(const CheckpointTable& table, std::string_view table_bytes,
                                        std::uint64_t offset);

/// Where the table stands, by a sound header.
struct TablePlace {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
/// Both give nothing when the bytes are not sound.
[[nodiscard]] std::optional<TablePlace> decode_header(std::string_view header);
[[nodiscard]] std::optional<CheckpointTable> decode_table(std::string_view header, std::string_view table_bytes);

// ---- blocks ---------------------------------------------------------------------------------------------------------
//
// keys: for each leaf a varint of its entries, then each of them by what differs from the one before (the first of a
// block: from zeros):
//   1  how many bytes the prefix shares with the one before; + 32: the size class of the key is that of the one before;
//      + 64: that of the record is; + 128: its place is as far behind the one before as that was
//   1  size class of the key, unless it is as before
//      the rest of the prefix: up to the key's end, or 16 bytes
//      varint: size class of the record, unless it is as before
//      varint, zigzag: how far the place is behind the one before, unless it is as before

class KeyBlockEncoder {
 public:
  void add_leaf(const BplusTree::Entries& entries);
  [[nodiscard]] std::string& bytes() noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t entries() const noexcept { return entries_; }
  [[nodiscard]] std::uint32_t leaves() const noexcept { return leaves_; }
  void clear() noexcept { *this = {}; }

 private:
  void add(BplusTree::Prefix prefix, std::uint64_t word);

  std::string bytes_;
  std::uint32_t entries_ = 0;
  std::uint32_t leaves_ = 0;
  BplusTree::Prefix prefix_ = 0;  // Of the entry before, as all below.
  std::uint8_t key_class_ = 0;
  std::uint64_t record_class_ = 0;
  std::uint64_t place_ = 0;
  std::uint64_t step_ = 0;
};

class KeyBlockDecoder {
 public:
  explicit KeyBlockDecoder(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  /// Reads a leaf, at most BplusTree::kLeafEntries, into the arrays; how many, or nothing when the bytes make no sense.
  std::optional<std::uint32_t> next_leaf(BplusTree::Prefix* prefixes, std::uint64_t* words);
  [[nodiscard]] bool at_end() const noexcept { return at_ == end_; }

 private:
  bool next(BplusTree::Prefix& prefix, std::uint64_t& word);

  const char* at_;
  const char* end_;
  char key_[sizeof(BplusTree::Prefix)] = {};  // Of the entry before, as all below.
  std::uint8_t key_class_ = 0;
  std::uint64_t record_class_ = 0;
  std::uint64_t place_ = 0;
  std::uint64_t step_ = 0;
};

/// runs: varints of the first number, the records, the place, the bytes, those of the records struck out and how many
/// words of 64 bits say which ones; then the words.
void append_run(const RunTable::Saved& run, std::string& to);
/// The next run of `bytes`, which it is taken from; nothing when they make no sense.
[[nodiscard]] std::optional<RunTable::Saved> take_run(std::string_view& bytes);

/// meta: varint of the key's bytes, the key, varint of the word that stands for its place.
void append_meta(std::string_view key, std::uint64_t word, std::string& to);
struct MetaEntry {
  std::string_view key;
  std::uint64_t word = 0;
};
[[nodiscard]] std::optional<MetaEntry> take_meta(std::string_view& bytes);

/// XXH3, seed 0.
[[nodiscard]] std::uint64_t checksum_of(std::string_view bytes) noexcept;

/// "INDEX"
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& dir);

}  // namespace kvingest::mmap_store
