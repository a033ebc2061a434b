#include "service/source_book.hpp"

namespace kvingest {

Result<SourceBook> SourceBook::load(const Store& store) {
  SourceBook book;
  std::optional<Error> bad;
  const auto keep = [&bad](auto decoded, auto& into) {
    if (decoded) {
      into = std::move(*decoded);
    } else if (!bad) {
      bad = std::move(decoded).error();
    }
  };
  KV_TRY(store.get(Space::meta, kMetaSeq, [&](std::string_view value) { keep(decode_seq(value), book.seq_); }));
  KV_TRY(store.get(Space::meta, kMetaRejectTotals,
                   [&](std::string_view value) { keep(RejectTotals::decode(value), book.rejects_); }));
  KV_TRY(store.get(Space::meta, kMetaRemoved,
                   [&](std::string_view value) { keep(RemovedTotals::decode(value), book.removed_); }));
  KV_TRY(store.get(Space::meta, kMetaColumns,
                   [&](std::string_view value) { keep(decode_columns(value), book.columns_); }));
  const std::string first(kMetaSources);
  std::string last = first;
  ++last.back();  // '/' becomes '0': behind every name.
  KV_TRY(
      store.scan(Space::meta, Range{.first = first, .last = last}, [&](std::string_view key, std::string_view value) {
        keep(SourceRecord::decode(value), book.sources_[std::string(key.substr(first.size()))]);
        return !bad;
      }));
  if (bad) return tl::unexpected<Error>(std::move(*bad));
  book.discard();
  return book;
}

std::uint64_t SourceBook::take_numbers(std::uint64_t puts) noexcept {
  const std::uint64_t first = next_seq_ + 1;
  next_seq_ += puts;
  return first;
}

SourceRecord& SourceBook::change(std::string_view source) {
  const auto at = changed_.find(source);
  if (at != changed_.end()) return at->second;
  return changed_.emplace(source, look_up(source)).first->second;
}

SourceRecord SourceBook::look_up(std::string_view source) const {
  const auto changed = changed_.find(source);
  if (changed != changed_.end()) return changed->second;
  const auto known = sources_.find(source);
  return known == sources_.end() ? SourceRecord{} : known->second;
}

std::size_t SourceBook::size() const noexcept {
  std::size_t fresh = 0;
  for (const auto& [name, record] : changed_) fresh += sources_.contains(name) ? 0 : 1;
  return sources_.size() + fresh;
}

void SourceBook::add_rejects(const std::vector<RejectRecord>& rejects, std::uint64_t kept_bytes_max,
                             WriteBatch& batch) {
  for (const RejectRecord& reject : rejects) {
    rejects_changed_ = true;
    if (next_rejects_.kept_bytes + reject.bytes.size() > kept_bytes_max) {
      ++next_rejects_.unkept;
      continue;
    }
    next_rejects_.kept_bytes += reject.bytes.size();
    batch.put_meta(reject_key(++next_rejects_.last_number), reject.encode());
  }
}

void SourceBook::write_changes(WriteBatch& batch) const {
  for (const auto& [name, record] : changed_) batch.put_meta(source_key(name), record.encode());
  if (next_seq_ != seq_) batch.put_meta(kMetaSeq, encode_seq(next_seq_));
  if (rejects_changed_) batch.put_meta(kMetaRejectTotals, next_rejects_.encode());
  if (next_removed_.erased != removed_.erased) {
    batch.put_meta(kMetaRemoved, next_removed_.encode());
    batch.erase_meta(kMetaHeld);  // The next run with a limit counts again.
  }
  if (next_columns_ != columns_) batch.put_meta(kMetaColumns, encode_columns(next_columns_));
}

void SourceBook::commit() {
  for (auto& [name, record] : changed_) sources_[name] = record;
  seq_ = next_seq_;
  rejects_ = next_rejects_;
  removed_ = next_removed_;
  columns_ = next_columns_;
  discard();
}

void SourceBook::discard() {
  changed_.clear();
  next_seq_ = seq_;
  next_rejects_ = rejects_;
  next_removed_ = removed_;
  rejects_changed_ = false;
  next_columns_ = columns_;
}

}  // namespace kvingest
