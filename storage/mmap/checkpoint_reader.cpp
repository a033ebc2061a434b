#include "storage/mmap/checkpoint_reader.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kvingest/codec/fixed.hpp"

namespace kvingest::mmap_store {
namespace {

constexpr std::uint64_t kTableBytesMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kBlockBytesMax = std::uint64_t{1} << 30;  // A run with every other record struck out is large.

// Where the places of a checkpoint are now.
class Relocation {
 public:
  Relocation(std::span<const CheckpointSegment> known, std::span<const std::unique_ptr<Segment>> segments) {
    for (const CheckpointSegment& one : known) {
      Range range{.begin = one.base, .end = one.base + one.place_end, .segment = nullptr};
      const auto at =
          std::lower_bound(segments.begin(), segments.end(), one.number,
                           [](const auto& segment, std::uint64_t wanted) { return segment->number() < wanted; });
      if (at != segments.end() && (*at)->number() == one.number) range.segment = at->get();
      for (Place place = one.base; place < range.end; place += AddressSpace::kGranuleBytes) {
        const std::size_t granule = place / AddressSpace::kGranuleBytes;
        if (range_at_.size() <= granule) range_at_.resize(granule + 1);
        range_at_[granule] = static_cast<std::uint32_t>(ranges_.size()) + 1;
      }
      ranges_.push_back(range);
    }
  }

  enum class Found { here, gone, nowhere };
  // Makes a place of now of one of then. `index` is that of its segment in the table.
  Found move(Place& place, std::size_t& index) const {
    const std::size_t granule = place / AddressSpace::kGranuleBytes;
    if (granule >= range_at_.size() || range_at_[granule] == 0) return Found::nowhere;
    index = range_at_[granule] - 1;
    const Range& range = ranges_[index];
    if (place < range.begin + kSegmentHeaderBytes || place >= range.end) return Found::nowhere;
    if (range.segment == nullptr) return Found::gone;
    place += range.segment->base() - range.begin;
    return Found::here;
  }
  // The same of a word that an index keeps.
  Found move_word(std::uint64_t& word, std::size_t& index) const {
    Place place = RecordPlace::from_word(word).place();
    const Place before = place;
    const Found found = move(place, index);
    word += place - before;
    return found;
  }
  [[nodiscard]] Segment& segment(std::size_t index) const { return *ranges_[index].segment; }
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }

 private:
  struct Range {
    Place begin;
    Place end;
    Segment* segment;  // Null: dropped since.
  };
  std::vector<Range> ranges_;            // As in the table.
  std::vector<std::uint32_t> range_at_;  // For each granule of addresses, 1 more than the index of the range it is of.
};

// What lives in each segment, by the index of it.
class Living {
 public:
  explicit Living(const Relocation& places) : places_(places), counts_(places.size()) {}
  void add(std::size_t index, std::uint64_t records, std::uint64_t bytes) {
    counts_[index].records += records;
    counts_[index].bytes += bytes;
  }
  void account() const {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i].records > 0) places_.segment(i).usage().alive(counts_[i].records, counts_[i].bytes);
    }
  }

 private:
  struct Count {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
  };
  const Relocation& places_;
  std::vector<Count> counts_;
};

class Loading {
 public:
  Loading(const File& file, const CheckpointTable& table, const Relocation& places, RecordIndex& records,
          MetaIndex& meta)
      : file_(file), table_(table), places_(places), records_(records), meta_(meta) {}

  Result<void> load(ThreadPool& pool);

 private:
  Result<void> load_keys(ThreadPool& pool);
  Result<void> load_key_block(const CheckpointBlock& block, std::size_t first_leaf);
  Result<void> load_run_block(const CheckpointBlock& block);
  Result<void> load_meta_block(const CheckpointBlock& block);
  Result<std::string> read(const CheckpointBlock& block) const;
  [[nodiscard]] tl::unexpected<Error> senseless(const CheckpointBlock& block) const {
    return fail(Code::corrupt, "{}: the block at offset {} makes no sense", file_.path().native(), block.offset);
  }

  const File& file_;
  const CheckpointTable& table_;
  const Relocation& places_;
  RecordIndex& records_;
  MetaIndex& meta_;
};

Result<void> Loading::load(ThreadPool& pool) {
  KV_TRY(load_keys(pool));
  for (const CheckpointBlock& block : table_.blocks) {
    if (block.kind == BlockKind::runs) KV_TRY(load_run_block(block));
    if (block.kind == BlockKind::meta) KV_TRY(load_meta_block(block));
  }
  return {};
}

Result<void> Loading::load_keys(ThreadPool& pool) {
  struct Work {
    const CheckpointBlock* block;
    std::size_t first_leaf;
  };
  std::vector<Work> work;
  std::size_t leaves = 0;
  for (const CheckpointBlock& block : table_.blocks) {
    if (block.kind != BlockKind::keys) continue;
    work.push_back({&block, leaves});
    leaves += block.leaves;
  }
  if (!records_.tree().begin_leaves(leaves)) {
    return fail(Code::no_space, "{}: more keys than index= has room for", file_.path().native());
  }
  std::mutex mutex;
  Result<void> result;
  pool.parallel_for(work.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      auto loaded = load_key_block(*work[i].block, work[i].first_leaf);
      if (loaded) continue;
      const std::scoped_lock lock(mutex);
      result = std::move(loaded);
    }
  });
  KV_TRY(result);
  if (records_.tree().finish_leaves()) return {};
  return fail(Code::corrupt, "{}: its keys are out of order", file_.path().native());
}

Result<std::string> Loading::read(const CheckpointBlock& block) const {
  if (block.bytes > kBlockBytesMax) return senseless(block);
  std::string bytes(block.bytes, '\0');
  KV_TRY(file_.read_at(bytes.data(), bytes.size(), block.offset));
  if (checksum_of(bytes) == block.checksum) return bytes;
  return fail(Code::corrupt, "{}: damaged between offset {} and {}", file_.path().native(), block.offset,
              block.offset + block.bytes);
}

Result<void> Loading::load_key_block(const CheckpointBlock& block, std::size_t first_leaf) {
  auto bytes = read(block);
  KV_TRY(bytes);
  KeyBlockDecoder decoder(*bytes);
  Living living(places_);
  std::uint64_t entries = 0;
  for (std::size_t leaf = first_leaf; leaf < first_leaf + block.leaves; ++leaf) {
    BplusTree::Prefix prefixes[BplusTree::kLeafEntries];
    std::uint64_t words[BplusTree::kLeafEntries];
    const auto count = decoder.next_leaf(prefixes, words);
    if (!count) return senseless(block);
    entries += *count;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < *count; ++i) {
      std::size_t segment = 0;
      std::uint64_t word = words[i];
      const Relocation::Found found = places_.move_word(word, segment);
      if (found == Relocation::Found::nowhere) return senseless(block);
      if (found == Relocation::Found::gone) continue;
      living.add(segment, 1, RecordPlace::from_word(word & BplusTree::kValueMask).about_bytes());
      prefixes[kept] = prefixes[i];
      words[kept++] = word;
    }
    if (!records_.tree().fill_leaf(leaf, {std::span(prefixes).first(kept), std::span(words).first(kept)})) {
      return senseless(block);
    }
  }
  if (!decoder.at_end() || entries != block.entries) return senseless(block);
  living.account();
  return {};
}

Result<void> Loading::load_run_block(const CheckpointBlock& block) {
  auto bytes = read(block);
  KV_TRY(bytes);
  std::string_view rest = *bytes;
  Living living(places_);
  for (std::uint32_t i = 0; i < block.entries; ++i) {
    auto run = take_run(rest);
    std::size_t segment = 0;
    if (!run) return senseless(block);
    const Relocation::Found found = places_.move(run->payload, segment);
    if (found == Relocation::Found::nowhere) return senseless(block);
    if (found == Relocation::Found::gone) continue;
    std::uint64_t alive = run->count;
    for (const std::uint64_t word : run->struck) alive -= static_cast<std::uint64_t>(std::popcount(word));
    living.add(segment, alive, run->bytes - std::min(run->struck_bytes, run->bytes));
    if (!records_.runs().restore(*run)) return senseless(block);
  }
  if (!rest.empty()) return senseless(block);
  living.account();
  return {};
}

Result<void> Loading::load_meta_block(const CheckpointBlock& block) {
  auto bytes = read(block);
  KV_TRY(bytes);
  std::string_view rest = *bytes;
  Living living(places_);
  for (std::uint32_t i = 0; i < block.entries; ++i) {
    auto entry = take_meta(rest);
    std::size_t segment = 0;
    if (!entry) return senseless(block);
    const Relocation::Found found = places_.move_word(entry->word, segment);
    if (found == Relocation::Found::nowhere) return senseless(block);
    if (found == Relocation::Found::gone) continue;
    const RecordPlace place = RecordPlace::from_word(entry->word);
    living.add(segment, 1, place.about_bytes());
    if (meta_.put(entry->key, place)) return senseless(block);
  }
  if (!rest.empty()) return senseless(block);
  living.account();
  return {};
}

}  // namespace

// ---- the file -------------------------------------------------------------------------------------------------------

Result<std::optional<Checkpoint>> Checkpoint::open(const Posix& posix, const std::filesystem::path& dir) {
  const std::filesystem::path path = checkpoint_path(dir);
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  auto file = File::open(posix, path, O_RDONLY);
  KV_TRY(file);
  auto size = file->size();
  KV_TRY(size);
  std::string header(kCheckpointHeaderBytes, '\0');
  if (*size < header.size()) return fail(Code::corrupt, "{}: {} bytes, too short", path.native(), *size);
  KV_TRY(file->read_at(header.data(), header.size(), 0));
  const auto place = decode_header(header);
  if (!place) return fail(Code::corrupt, "{}: no sound header of version {}", path.native(), kCheckpointVersion);
  if (place->bytes > kTableBytesMax || place->offset > *size || *size - place->offset != place->bytes) {
    return fail(Code::corrupt, "{}: {} bytes, its header says {}", path.native(), *size, place->offset + place->bytes);
  }
  std::string bytes(place->bytes, '\0');
  KV_TRY(file->read_at(bytes.data(), bytes.size(), place->offset));
  auto table = decode_table(header, bytes);
  if (!table) return fail(Code::corrupt, "{}: damaged behind offset {}", path.native(), place->offset);
  return Checkpoint(posix, std::move(*file), std::move(*table));
}

Result<void> Checkpoint::check_belongs_to(const LogFiles& files) const {
  if (table_.segments.empty() || files.segments.empty() || files.segments.front().header.store_id != table_.store_id) {
    return fail(Code::corrupt, "{} is of another store", file_.path().native());
  }
  const std::uint64_t newest = table_.segments.back().number;
  for (const SegmentFile& found : files.segments) {
    if (found.header.number > newest) continue;
    const CheckpointSegment* const known = table_.find(found.header.number);
    if (known == nullptr) {
      return fail(Code::corrupt, "{} does not know {}", file_.path().native(), found.path.native());
    }
    KV_TRY(check_segment(found, *known));
  }
  return {};
}

Result<void> Checkpoint::check_segment(const SegmentFile& found, const CheckpointSegment& known) const {
  if (known.place_end <= kSegmentHeaderBytes) return {};  // It held nothing; another may have taken its number.
  auto file = File::open(*posix_, found.path, O_RDONLY);
  KV_TRY(file);
  auto size = file->size();
  KV_TRY(size);
  bool same = found.header.seed == known.seed && known.place_end <= *size && known.end <= known.place_end &&
              known.end >= kSegmentHeaderBytes;
  if (same && known.last_frame != 0) {
    char commit[sizeof known.commit];
    KV_TRY(file->read_at(commit, sizeof commit, known.end - sizeof commit));
    same = codec::get_fixed<std::uint64_t>(commit) == known.commit;
  }
  if (same) return {};
  return fail(Code::corrupt, "{} was made of another {}", file_.path().native(), found.path.native());
}

Result<void> Checkpoint::load(ThreadPool& pool, std::span<const std::unique_ptr<Segment>> segments,
                              RecordIndex& records, MetaIndex& meta) const {
  for (const auto& segment : segments) {
    const CheckpointSegment* const known = table_.find(segment->number());
    if (known != nullptr) segment->usage().all_dead(known->records, known->bytes, known->erasure_bytes);
  }
  const Relocation places(table_.segments, segments);
  return Loading(file_, table_, places, records, meta).load(pool);
}

}  // namespace kvingest::mmap_store
