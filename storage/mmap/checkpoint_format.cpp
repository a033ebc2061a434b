#include "storage/mmap/checkpoint_format.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kvingest/codec/fixed.hpp"
#include "kvingest/codec/varint.hpp"

namespace kvingest::mmap_store {
namespace {

using codec::get_fixed;
using codec::put_fixed;

constexpr std::string_view kIndexMagic = "kvindex\n";
constexpr std::size_t kSegmentBytes = 104;
constexpr std::size_t kBlockBytes = 40;
constexpr std::size_t kTableChecksumAt = 80;
constexpr std::size_t kHeaderChecksumAt = 88;

// In the first byte of an entry, beside the shared bytes.
constexpr std::uint8_t kSharedMask = 31;
constexpr std::uint8_t kSameKeyClass = 32;
constexpr std::uint8_t kSameRecordClass = 64;
constexpr std::uint8_t kSameStep = 128;

// Parts of an entry's word: see RecordPlace, and BplusTree::Entries for the class in front.
constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << AddressSpace::kPlaceBits) - 1;
constexpr unsigned kRecordClassShift = AddressSpace::kPlaceBits;
constexpr std::uint64_t kRecordClassMask = (std::uint64_t{1} << (BplusTree::kValueBits - kRecordClassShift)) - 1;

constexpr std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 == 0 ? 0 : ~std::uint64_t{0});
}
constexpr std::uint64_t unzigzag(std::uint64_t coded) {
  return coded >> 1 ^ ((coded & 1) == 0 ? 0 : ~std::uint64_t{0});
}

void append_varint(std::uint64_t value, std::string& to) {
  char bytes[codec::kVarint64BytesMax];
  to.append(bytes, static_cast<std::size_t>(codec::put_varint(bytes, value) - bytes));
}

bool take_varint(std::string_view& bytes, std::uint64_t& value) {
  const char* const behind = codec::get_varint(bytes.data(), bytes.data() + bytes.size(), value);
  if (behind == nullptr) return false;
  bytes.remove_prefix(static_cast<std::size_t>(behind - bytes.data()));
  return true;
}

void put_prefix(char* to, BplusTree::Prefix prefix) {
  codec::put_ordered(to, static_cast<std::uint64_t>(prefix >> 64));
  codec::put_ordered(to + 8, static_cast<std::uint64_t>(prefix));
}

std::uint32_t shared_bytes(BplusTree::Prefix a, BplusTree::Prefix b) {
  const BplusTree::Prefix differing = a ^ b;
  const auto high = static_cast<std::uint64_t>(differing >> 64);
  if (high != 0) return static_cast<std::uint32_t>(std::countl_zero(high)) / 8;
  return 8 + static_cast<std::uint32_t>(std::countl_zero(static_cast<std::uint64_t>(differing))) / 8;
}

template <class Number>
char* put_next(char* at, Number number) {
  put_fixed(at, number);
  return at + sizeof number;
}
template <class Number>
void get_next(const char*& at, Number& number) {
  number = get_fixed<Number>(at);
  at += sizeof number;
}

}  // namespace

std::uint64_t checksum_of(std::string_view bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::filesystem::path checkpoint_path(const std::filesystem::path& dir) {
  return dir / "INDEX";
}

// ---- header and table -----------------------------------------------------------------------------------------------

const CheckpointSegment* CheckpointTable::find(std::uint64_t number) const noexcept {
  const auto at =
      std::lower_bound(segments.begin(), segments.end(), number,
                       [](const CheckpointSegment& one, std::uint64_t wanted) { return one.number < wanted; });
  return at != segments.end() && at->number == number ? &*at : nullptr;
}

std::string encode_table(const CheckpointTable& table) {
  std::string bytes(table.segments.size() * kSegmentBytes + table.blocks.size() * kBlockBytes, '\0');
  char* at = bytes.data();
  for (const CheckpointSegment& one : table.segments) {
    for (const std::uint64_t number :
         {one.number, one.seed, one.base, one.place_end, one.end, one.frames_before, one.batches_before, one.last_frame,
          one.last_batch, one.commit, one.records, one.bytes, one.erasure_bytes}) {
      at = put_next(at, number);
    }
  }
  for (const CheckpointBlock& one : table.blocks) {
    at = put_next(at, one.offset);
    at = put_next(at, one.bytes);
    at = put_next(at, static_cast<std::uint32_t>(one.kind));
    at = put_next(at, one.entries);
    at = put_next(at, one.leaves);
    at = put_next(at, one.checksum);
    at = put_next(at, std::uint64_t{0});
  }
  return bytes;
}

std::string encode_header(const CheckpointTable& table, std::string_view table_bytes, std::uint64_t offset) {
  std::string bytes(kCheckpointHeaderBytes, '\0');
  char* const at = bytes.data();
  kIndexMagic.copy(at, kIndexMagic.size());
  put_fixed(at + 8, kCheckpointVersion);
  put_fixed(at + 12, static_cast<std::uint32_t>(kCheckpointHeaderBytes));
  put_fixed(at + 16, table.store_id);
  put_fixed(at + 24, table.frame);
  put_fixed(at + 32, table.batch);
  put_fixed(at + 40, table.synced_to);
  put_fixed(at + 48, offset);
  put_fixed(at + 56, static_cast<std::uint32_t>(table.segments.size()));
  put_fixed(at + 60, static_cast<std::uint32_t>(table.blocks.size()));
  put_fixed(at + 64, std::uint64_t{table.ends_in_mark});
  put_fixed(at + kTableChecksumAt, checksum_of(table_bytes));
  put_fixed(at + kHeaderChecksumAt, checksum_of(std::string_view(bytes).substr(0, kHeaderChecksumAt)));
  return bytes;
}

std::optional<TablePlace> decode_header(std::string_view header) {
  if (header.size() != kCheckpointHeaderBytes) return std::nullopt;
  const char* const at = header.data();
  if (!header.starts_with(kIndexMagic) || get_fixed<std::uint32_t>(at + 8) != kCheckpointVersion ||
      get_fixed<std::uint32_t>(at + 12) != kCheckpointHeaderBytes ||
      get_fixed<std::uint64_t>(at + kHeaderChecksumAt) != checksum_of(header.substr(0, kHeaderChecksumAt))) {
    return std::nullopt;
  }
  return TablePlace{
      .offset = get_fixed<std::uint64_t>(at + 48),
      .bytes = get_fixed<std::uint32_t>(at + 56) * kSegmentBytes + get_fixed<std::uint32_t>(at + 60) * kBlockBytes};
}

std::optional<CheckpointTable> decode_table(std::string_view header, std::string_view table_bytes) {
  const auto place = decode_header(header);
  if (!place || table_bytes.size() != place->bytes ||
      get_fixed<std::uint64_t>(header.data() + kTableChecksumAt) != checksum_of(table_bytes)) {
    return std::nullopt;
  }
  const char* at = header.data();
  CheckpointTable table;
  table.store_id = get_fixed<std::uint64_t>(at + 16);
  table.frame = get_fixed<std::uint64_t>(at + 24);
  table.batch = get_fixed<std::uint64_t>(at + 32);
  table.synced_to = get_fixed<std::uint64_t>(at + 40);
  table.segments.resize(get_fixed<std::uint32_t>(at + 56));
  table.blocks.resize(get_fixed<std::uint32_t>(at + 60));
  table.ends_in_mark = get_fixed<std::uint64_t>(at + 64) != 0;
  at = table_bytes.data();
  for (CheckpointSegment& one : table.segments) {
    for (std::uint64_t* const number :
         {&one.number, &one.seed, &one.base, &one.place_end, &one.end, &one.frames_before, &one.batches_before,
          &one.last_frame, &one.last_batch, &one.commit, &one.records, &one.bytes, &one.erasure_bytes}) {
      get_next(at, *number);
    }
  }
  for (CheckpointBlock& one : table.blocks) {
    std::uint32_t kind = 0;
    std::uint64_t unused = 0;
    get_next(at, one.offset);
    get_next(at, one.bytes);
    get_next(at, kind);
    get_next(at, one.entries);
    get_next(at, one.leaves);
    get_next(at, one.checksum);
    get_next(at, unused);
    one.kind = static_cast<BlockKind>(kind);
  }
  return table;
}

// ---- keys -----------------------------------------------------------------------------------------------------------

void KeyBlockEncoder::add_leaf(const BplusTree::Entries& entries) {
  append_varint(entries.words.size(), bytes_);
  for (std::size_t i = 0; i < entries.words.size(); ++i) add(entries.prefixes[i], entries.words[i]);
  entries_ += static_cast<std::uint32_t>(entries.words.size());
  ++leaves_;
}

void KeyBlockEncoder::add(BplusTree::Prefix prefix, std::uint64_t word) {
  const std::uint8_t key_class = BplusTree::class_of(word);
  const std::uint64_t record_class = word >> kRecordClassShift & kRecordClassMask;
  const std::uint64_t place = word & kPlaceMask;
  const std::uint64_t step = place - place_;
  const std::uint32_t key_bytes = std::min<std::uint32_t>(key_class, sizeof prefix);
  const std::uint32_t shared = std::min(shared_bytes(prefix, prefix_), key_bytes);

  char entry[1 + 1 + sizeof prefix + 2 * codec::kVarint64BytesMax];
  char* at = entry + 1;
  auto control = static_cast<std::uint8_t>(shared);
  if (key_class == key_class_) {
    control |= kSameKeyClass;
  } else {
    *at++ = static_cast<char>(key_class);
  }
  char key[sizeof prefix];
  put_prefix(key, prefix);
  std::memcpy(at, key + shared, key_bytes - shared);
  at += key_bytes - shared;
  if (record_class == record_class_) {
    control |= kSameRecordClass;
  } else {
    at = codec::put_varint(at, record_class);
  }
  if (step == step_) {
    control |= kSameStep;
  } else {
    at = codec::put_varint(at, zigzag(step));
  }
  entry[0] = static_cast<char>(control);
  bytes_.append(entry, static_cast<std::size_t>(at - entry));

  prefix_ = prefix;
  key_class_ = key_class;
  record_class_ = record_class;
  place_ = place;
  step_ = step;
}

std::optional<std::uint32_t> KeyBlockDecoder::next_leaf(BplusTree::Prefix* prefixes, std::uint64_t* words) {
  std::uint64_t count = 0;
  at_ = codec::get_varint(at_, end_, count);
  if (at_ == nullptr || count > BplusTree::kLeafEntries) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!next(prefixes[i], words[i])) return std::nullopt;
  }
  return static_cast<std::uint32_t>(count);
}

bool KeyBlockDecoder::next(BplusTree::Prefix& prefix, std::uint64_t& word) {
  if (at_ == end_) return false;
  const auto control = static_cast<std::uint8_t>(*at_++);
  if ((control & kSameKeyClass) == 0) {
    if (at_ == end_) return false;
    key_class_ = static_cast<std::uint8_t>(*at_++);
  }
  if (key_class_ == 0 || key_class_ > BplusTree::kLongKey) return false;
  const std::size_t key_bytes = std::min<std::size_t>(key_class_, sizeof key_);
  const std::size_t shared = control & kSharedMask;
  if (shared > key_bytes || key_bytes - shared > static_cast<std::size_t>(end_ - at_)) return false;
  std::memcpy(key_ + shared, at_, key_bytes - shared);
  std::memset(key_ + key_bytes, 0, sizeof key_ - key_bytes);
  at_ += key_bytes - shared;
  if ((control & kSameRecordClass) == 0) {
    at_ = codec::get_varint(at_, end_, record_class_);
    if (at_ == nullptr || record_class_ > kRecordClassMask) return false;
  }
  if ((control & kSameStep) == 0) {
    at_ = codec::get_varint(at_, end_, step_);
    if (at_ == nullptr) return false;
    step_ = unzigzag(step_);
  }
  place_ += step_;
  if (place_ > kPlaceMask) return false;
  prefix =
      BplusTree::Prefix{codec::get_ordered<std::uint64_t>(key_)} << 64 | codec::get_ordered<std::uint64_t>(key_ + 8);
  word = std::uint64_t{key_class_} << BplusTree::kValueBits | record_class_ << kRecordClassShift | place_;
  return true;
}

// ---- runs and meta entries ------------------------------------------------------------------------------------------

void append_run(const RunTable::Saved& run, std::string& to) {
  for (const std::uint64_t number : {run.first, std::uint64_t{run.count}, run.payload, std::uint64_t{run.bytes},
                                     std::uint64_t{run.struck_bytes}, std::uint64_t{run.struck.size()}}) {
    append_varint(number, to);
  }
  for (const std::uint64_t word : run.struck) {
    char bytes[sizeof word];
    put_fixed(bytes, word);
    to.append(bytes, sizeof bytes);
  }
}

std::optional<RunTable::Saved> take_run(std::string_view& bytes) {
  std::uint64_t count = 0;
  std::uint64_t run_bytes = 0;
  std::uint64_t struck_bytes = 0;
  std::uint64_t words = 0;
  RunTable::Saved run;
  for (std::uint64_t* const number : {&run.first, &count, &run.payload, &run_bytes, &struck_bytes, &words}) {
    if (!take_varint(bytes, *number)) return std::nullopt;
  }
  constexpr std::uint64_t kMax = ~std::uint32_t{0};
  if (count > kMax || run_bytes > kMax || struck_bytes > kMax || run.payload > kPlaceMask ||
      words > bytes.size() / sizeof(std::uint64_t)) {
    return std::nullopt;
  }
  run.count = static_cast<std::uint32_t>(count);
  run.bytes = static_cast<std::uint32_t>(run_bytes);
  run.struck_bytes = static_cast<std::uint32_t>(struck_bytes);
  for (; words > 0; --words) {
    run.struck.push_back(get_fixed<std::uint64_t>(bytes.data()));
    bytes.remove_prefix(sizeof(std::uint64_t));
  }
  return run;
}

void append_meta(std::string_view key, std::uint64_t word, std::string& to) {
  append_varint(key.size(), to);
  to.append(key);
  append_varint(word, to);
}

std::optional<MetaEntry> take_meta(std::string_view& bytes) {
  MetaEntry entry;
  std::uint64_t key_bytes = 0;
  if (!take_varint(bytes, key_bytes) || key_bytes == 0 || key_bytes > bytes.size()) return std::nullopt;
  entry.key = bytes.substr(0, key_bytes);
  bytes.remove_prefix(key_bytes);
  if (!take_varint(bytes, entry.word) || entry.word > BplusTree::kValueMask) return std::nullopt;
  return entry;
}

}  // namespace kvingest::mmap_store
