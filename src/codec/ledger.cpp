#include "kvingest/ledger.hpp"

#include <initializer_list>

#include "kvingest/codec/fixed.hpp"
#include "kvingest/codec/varint.hpp"

namespace kvingest {
namespace {

constexpr char kFormat = 1;
constexpr char kRemovedFormat = 2;  // 1 had no `unnumbered`.

void append_u64(std::string& to, std::uint64_t value) {
  char bytes[8];
  codec::put_fixed(bytes, value);
  to.append(bytes, sizeof bytes);
}

void append_text(std::string& to, std::string_view text) {
  char length[codec::kVarint64BytesMax];
  to.append(length, static_cast<std::size_t>(codec::put_varint(length, text.size()) - length)).append(text);
}

std::string encode_numbers(std::initializer_list<std::uint64_t> numbers, char format = kFormat) {
  std::string bytes(1, format);
  for (const std::uint64_t number : numbers) append_u64(bytes, number);
  return bytes;
}

std::string numbered_key(std::string_view first, std::uint64_t number) {
  char digits[8];
  codec::put_ordered(digits, number);
  return std::string(first).append(digits, sizeof digits);
}

/// Takes values from the front of an encoded entry; after the first that is not there, everything reads as empty.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes, char format = kFormat) : bytes_(bytes) {
    ok_ = !bytes_.empty() && bytes_.front() == format;
    if (ok_) bytes_.remove_prefix(1);
  }

  std::uint64_t u64() {
    if (!ok_ || bytes_.size() < 8) return ok_ = false, 0;
    const auto value = codec::get_fixed<std::uint64_t>(bytes_.data());
    bytes_.remove_prefix(8);
    return value;
  }
  std::string text() {
    std::uint64_t length = 0;
    const char* end = bytes_.data() + bytes_.size();
    const char* at = ok_ ? codec::get_varint(bytes_.data(), end, length) : nullptr;
    if (at == nullptr || length > static_cast<std::uint64_t>(end - at)) return ok_ = false, std::string();
    std::string value(at, length);
    bytes_.remove_prefix(static_cast<std::size_t>(at - bytes_.data()) + length);
    return value;
  }
  /// Whether everything was there and nothing is left over.
  [[nodiscard]] bool whole() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_;
};

}  // namespace

Tally& Tally::operator+=(const Tally& other) noexcept {
  received += other.received;
  stored += other.stored;
  rejected += other.rejected;
  blank += other.blank;
  duplicate += other.duplicate;
  return *this;
}

std::string SourceRecord::encode() const {
  std::string to = encode_numbers({line, total.received, total.stored, total.rejected, total.blank, total.duplicate});
  append_text(to, columns);
  return to;
}

Result<SourceRecord> SourceRecord::decode(std::string_view bytes) {
  Decoder in(bytes);
  SourceRecord record;
  record.line = in.u64();
  record.total.received = in.u64();
  record.total.stored = in.u64();
  record.total.rejected = in.u64();
  record.total.blank = in.u64();
  record.total.duplicate = in.u64();
  record.columns = in.text();
  if (!in.whole())
    return fail(Code::corrupt, "meta {}: {} bytes that are no source record", kMetaSources, bytes.size());
  return record;
}

std::string RejectTotals::encode() const {
  return encode_numbers({last_number, kept_bytes, unkept});
}

Result<RejectTotals> RejectTotals::decode(std::string_view bytes) {
  Decoder in(bytes);
  RejectTotals totals;
  totals.last_number = in.u64();
  totals.kept_bytes = in.u64();
  totals.unkept = in.u64();
  if (!in.whole()) return fail(Code::corrupt, "meta {}: {} bytes that are no totals", kMetaRejectTotals, bytes.size());
  return totals;
}

std::string RemovedTotals::encode() const {
  return encode_numbers({erased, expired, unnumbered}, kRemovedFormat);
}

Result<RemovedTotals> RemovedTotals::decode(std::string_view bytes) {
  Decoder in(bytes, kRemovedFormat);
  RemovedTotals totals;
  totals.erased = in.u64();
  totals.expired = in.u64();
  totals.unnumbered = in.u64();
  if (!in.whole()) return fail(Code::corrupt, "meta {}: {} bytes that are no totals", kMetaRemoved, bytes.size());
  return totals;
}

std::string HeldBytes::encode() const {
  return encode_numbers({seq, bytes});
}

Result<HeldBytes> HeldBytes::decode(std::string_view encoded) {
  Decoder in(encoded);
  HeldBytes held;
  held.seq = in.u64();
  held.bytes = in.u64();
  if (!in.whole()) return fail(Code::corrupt, "meta {}: {} bytes that are no count", kMetaHeld, encoded.size());
  return held;
}

std::string RejectRecord::encode() const {
  std::string to = encode_numbers({line, offset, length, checksum});
  for (const std::string* text : {&peer, &source, &reason, &detail, &bytes}) append_text(to, *text);
  return to;
}

Result<RejectRecord> RejectRecord::decode(std::string_view encoded) {
  Decoder in(encoded);
  RejectRecord record;
  record.line = in.u64();
  record.offset = in.u64();
  record.length = in.u64();
  record.checksum = in.u64();
  record.peer = in.text();
  record.source = in.text();
  record.reason = in.text();
  record.detail = in.text();
  record.bytes = in.text();
  if (!in.whole()) return fail(Code::corrupt, "meta {}: {} bytes that are no reject", kMetaRejects, encoded.size());
  return record;
}

std::string source_key(std::string_view name) {
  return std::string(kMetaSources).append(name);
}

std::string reject_key(std::uint64_t number) {
  return numbered_key(kMetaRejects, number);
}

std::string time_key(std::uint64_t number) {
  return numbered_key(kMetaTimes, number);
}

std::string encode_number(std::uint64_t number) {
  return encode_numbers({number});
}

Result<std::uint64_t> decode_number(std::string_view bytes, std::string_view key) {
  Decoder in(bytes);
  const std::uint64_t number = in.u64();
  if (!in.whole()) return fail(Code::corrupt, "meta {}: {} bytes that are no number", key, bytes.size());
  return number;
}

std::string encode_columns(std::string_view columns) {
  std::string to = encode_numbers({});
  append_text(to, columns);
  return to;
}

Result<std::string> decode_columns(std::string_view bytes) {
  Decoder in(bytes);
  std::string columns = in.text();
  if (!in.whole()) return fail(Code::corrupt, "meta {}: {} bytes that are no columns", kMetaColumns, bytes.size());
  return columns;
}

}  // namespace kvingest
