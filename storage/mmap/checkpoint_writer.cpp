#include "storage/mmap/checkpoint_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

namespace kvingest::mmap_store {
namespace {

constexpr std::size_t kBlockBytesMin = std::size_t{64} << 10;  // Some thousand keys: enough work for a thread to take.

// Copied while the latch is held: some ten microseconds.
constexpr std::size_t kLeavesPerHold = 64;
constexpr std::size_t kRunsPerHold = 1024;
constexpr std::size_t kMetaPerHold = 256;

struct Leaves {
  std::vector<BplusTree::Prefix> prefixes;
  std::vector<std::uint64_t> words;
  std::vector<std::size_t> ends;  // Of each leaf, in the two above.
};

// Copies the entries from `from` on, and says where the next ones begin.
std::optional<std::string> copy_leaves(const BplusTree& tree, const std::string& from, Leaves& to) {
  auto cursor = tree.lower_bound(from);
  while (cursor.valid() && to.ends.size() < kLeavesPerHold) {
    const BplusTree::Entries leaf = tree.take_leaf(cursor);
    to.prefixes.insert(to.prefixes.end(), leaf.prefixes.begin(), leaf.prefixes.end());
    to.words.insert(to.words.end(), leaf.words.begin(), leaf.words.end());
    to.ends.push_back(to.words.size());
  }
  if (!cursor.valid()) return std::nullopt;
  BplusTree::KeyBuffer buffer;
  return std::string(tree.key(cursor, buffer));
}

// Removes the file that has not got its name; whether that succeeds changes nothing for the caller.
class Unpublished {
 public:
  Unpublished(const Posix& posix, std::filesystem::path path) : posix_(posix), path_(std::move(path)) {}
  Unpublished(const Unpublished&) = delete;
  Unpublished& operator=(const Unpublished&) = delete;
  ~Unpublished() {
    if (!path_.empty()) posix_.unlink(path_.c_str());
  }
  void published() { path_.clear(); }

 private:
  const Posix& posix_;
  std::filesystem::path path_;
};

}  // namespace

Result<std::optional<CheckpointWriter::Written>> CheckpointWriter::write(const std::atomic<bool>& stop) {
  const std::filesystem::path path = checkpoint_path(home_.dir);
  std::filesystem::path unpublished_path = path;
  unpublished_path += ".tmp";
  auto file = File::open(home_.posix, unpublished_path, O_RDWR | O_CREAT | O_TRUNC);
  KV_TRY(file);
  Unpublished unpublished(home_.posix, unpublished_path);
  file_ = std::move(*file);
  offset_ = kCheckpointHeaderBytes;
  table_ = {};
  {
    // Segments that go meanwhile leave their addresses unused, so that a place never means two of them.
    const AddressSpace::Hold hold(home_.space);
    look_at_segments(true);
    KV_TRY(write_entries(stop));
    look_at_segments(false);
  }
  if (stop) return std::nullopt;
  auto written = publish();
  file_.reset();
  KV_TRY(written);
  unpublished.published();
  return std::optional(*written);
}

// Keys before runs: what was put on its own and is then covered by a run is in both, and the run's frame, which is
// behind F, takes it out of the keys again.
Result<void> CheckpointWriter::write_entries(const std::atomic<bool>& stop) {
  for (auto part : {&CheckpointWriter::write_keys, &CheckpointWriter::write_runs, &CheckpointWriter::write_meta}) {
    next_key_.emplace();
    next_number_ = 0;
    for (bool more = true; more && !stop;) {
      auto step = (this->*part)();
      KV_TRY(step);
      more = *step;
    }
  }
  return {};
}

Result<bool> CheckpointWriter::write_keys() {
  Leaves leaves;
  next_key_ = index_.inspect([&](const RecordIndex& records, const MetaIndex& /*meta*/) {
    return copy_leaves(records.tree(), *next_key_, leaves);
  });
  std::size_t begin = 0;
  for (const std::size_t end : leaves.ends) {
    keys_.add_leaf(
        {std::span(leaves.prefixes).subspan(begin, end - begin), std::span(leaves.words).subspan(begin, end - begin)});
    begin = end;
    if (keys_.bytes().size() >= kBlockBytesMin) KV_TRY(write_key_block());
  }
  if (!next_key_) KV_TRY(write_key_block());
  return next_key_.has_value();
}

Result<void> CheckpointWriter::write_key_block() {
  if (keys_.entries() == 0) return {};
  auto written = write_block(BlockKind::keys, keys_.bytes(), keys_.entries(), keys_.leaves());
  keys_.clear();
  return written;
}

Result<bool> CheckpointWriter::write_runs() {
  const std::vector<RunTable::Saved> runs = index_.inspect([&](const RecordIndex& records, const MetaIndex& /*meta*/) {
    return records.runs().save(*next_number_, kRunsPerHold);
  });
  if (runs.empty()) return false;
  std::string bytes;
  for (const RunTable::Saved& run : runs) append_run(run, bytes);
  KV_TRY(write_block(BlockKind::runs, bytes, static_cast<std::uint32_t>(runs.size()), 0));
  next_number_ = runs.back().first + 1;  // Of the same run, so that it does not come round.
  return runs.size() == kRunsPerHold && *next_number_ != 0;
}

Result<bool> CheckpointWriter::write_meta() {
  std::string bytes;
  std::uint32_t entries = 0;
  next_key_ = index_.inspect([&](const RecordIndex& /*records*/, const MetaIndex& meta) {
    auto cursor = meta.seek(*next_key_);
    for (; cursor.valid() && entries < kMetaPerHold; cursor.next(), ++entries) {
      append_meta(cursor.key(), cursor.place().word(), bytes);
    }
    return cursor.valid() ? std::optional(std::string(cursor.key())) : std::nullopt;
  });
  if (entries > 0) KV_TRY(write_block(BlockKind::meta, bytes, entries, 0));
  return next_key_.has_value();
}

Result<void> CheckpointWriter::write_block(BlockKind kind, std::string_view bytes, std::uint32_t entries,
                                           std::uint32_t leaves) {
  KV_TRY(file_.write_at(bytes, offset_));
  table_.blocks.push_back({.offset = offset_,
                           .bytes = static_cast<std::uint32_t>(bytes.size()),
                           .kind = kind,
                           .entries = entries,
                           .leaves = leaves,
                           .checksum = checksum_of(bytes)});
  offset_ += bytes.size();
  return {};
}

// At the beginning: how far the log is in the checkpoint. At the end: how far any entry in it reaches.
void CheckpointWriter::look_at_segments(bool begin) {
  const std::scoped_lock turn(turns_);
  if (begin) {
    table_.store_id = home_.store_id;
    table_.frame = log_.last_frame();
    table_.batch = log_.last_batch();
    table_.ends_in_mark = log_.ends_in_mark();
  }
  table_.synced_to = log_.last_frame();
  log_.for_each_segment([&](Segment& segment) {
    if (table_.find(segment.number()) == nullptr) add(segment, begin);
  });
  auto at = table_.segments.begin();
  log_.for_each_segment([&](Segment& segment) {
    while (at->number != segment.number()) ++at;  // Dropped meanwhile.
    at->place_end = segment.end();
  });
}

// By rising numbers: later ones are newer.
void CheckpointWriter::add(Segment& segment, bool begin) {
  CheckpointSegment one{.number = segment.number(),
                        .seed = segment.seed(),
                        .base = segment.base(),
                        .end = kSegmentHeaderBytes,
                        .frames_before = segment.frames_before(),
                        .batches_before = segment.batches_before()};
  if (begin) {
    one.end = segment.end();
    one.last_frame = segment.last_frame();
    one.last_batch = segment.last_batch();
    one.commit = segment.last_commit();
    one.records = segment.usage().records;
    one.bytes = segment.usage().bytes;
    one.erasure_bytes = segment.usage().erasure_bytes;
  }
  table_.segments.push_back(one);
}

Result<CheckpointWriter::Written> CheckpointWriter::publish() {
  KV_TRY(log_.sync());
  const std::string table = encode_table(table_);
  KV_TRY(file_.write_at(table, offset_));
  KV_TRY(file_.write_at(encode_header(table_, table, offset_), 0));
  KV_TRY(file_.sync_data());
  const std::filesystem::path path = checkpoint_path(home_.dir);
  if (home_.posix.rename(file_.path().c_str(), path.c_str()) != 0) return fail(errno, "rename to {}", path.native());
  KV_TRY(sync_directory(home_.posix, home_.dir));
  return Written{.frame = table_.frame, .file_bytes = offset_ + table.size()};
}

}  // namespace kvingest::mmap_store
