#include "http/load/target.hpp"
#include "kvingest/ledger.hpp"

namespace kvingest::fetch {
namespace {

constexpr std::string_view kNotePrefix = "fetch/";
constexpr std::string_view kFetchSource = "@fetch";

Result<std::optional<std::string>> read(const Store& store, Space space, std::string_view key) {
  std::optional<std::string> found;
  const auto got = store.get(space, key, [&](std::string_view value) { found = std::string(value); });
  KV_TRY(got);
  return found;
}

}  // namespace

Result<std::optional<std::string>> StoreTarget::find(std::string_view key) {
  return read(*store_, Space::records, key);
}

Result<std::optional<std::string>> StoreTarget::note(std::string_view name) {
  return read(*store_, Space::meta, std::string(kNotePrefix) + std::string(name));
}

Result<void> StoreTarget::commit(std::span<const Record* const> records, const Notes& notes) {
  batch_.clear();
  for (const Record* record : records) batch_.put(record->key, record->json);
  if (!records.empty()) {
    const auto seq_bytes = read(*store_, Space::meta, kMetaSeq);
    KV_TRY(seq_bytes);
    const auto seq = *seq_bytes ? decode_seq(**seq_bytes) : Result<std::uint64_t>(0);
    KV_TRY(seq);
    const auto source_bytes = read(*store_, Space::meta, source_key(kFetchSource));
    KV_TRY(source_bytes);
    auto source = *source_bytes ? SourceRecord::decode(**source_bytes) : Result<SourceRecord>(SourceRecord{});
    KV_TRY(source);
    source->total.received += records.size();
    source->total.stored += records.size();
    const std::uint64_t last = batch_.number(*seq + 1) - 1;
    batch_.put_meta(source_key(kFetchSource), source->encode());
    batch_.put_meta(kMetaSeq, encode_seq(last));
  }
  for (const auto& [name, text] : notes) batch_.put_meta(std::string(kNotePrefix) + name, text);
  if (batch_.empty()) return {};
  return store_->write(batch_, Durability::disk);
}

}  // namespace kvingest::fetch
