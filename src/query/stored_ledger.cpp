#include "query/stored_ledger.hpp"

#include "kvingest/codec/fixed.hpp"
#include "query/pages.hpp"

namespace kvingest::query {
namespace {

/// Decodes what visitors pass and keeps the first failure, which they cannot return.
class Decoding {
 public:
  template <class T>
  void keep(Result<T> decoded, T& into) {
    if (decoded) {
      into = *std::move(decoded);
    } else if (!problem_) {
      problem_ = std::move(decoded).error();
    }
  }
  [[nodiscard]] Result<void> done() const {
    return problem_ ? Result<void>(tl::unexpected<Error>(*problem_)) : Result<void>();
  }

 private:
  std::optional<Error> problem_;
};

}  // namespace

Tally StoredLedger::total() const {
  Tally total;
  for (const auto& [name, record] : sources) total += record.total;
  return total;
}

Result<StoredLedger> read_ledger(const Store& store) {
  StoredLedger ledger;
  Decoding decoding;
  KV_TRY(
      store.get(Space::meta, kMetaSeq, [&](std::string_view value) { decoding.keep(decode_seq(value), ledger.seq); }));
  KV_TRY(store.get(Space::meta, kMetaRejectTotals,
                   [&](std::string_view value) { decoding.keep(RejectTotals::decode(value), ledger.rejects); }));
  KV_TRY(store.get(Space::meta, kMetaRemoved,
                   [&](std::string_view value) { decoding.keep(RemovedTotals::decode(value), ledger.removed); }));
  const auto walked = walk_pages(
      store, Space::meta, select(std::string(kMetaSources), std::nullopt, std::nullopt),
      [&](std::string_view key, std::string_view value) {
        decoding.keep(SourceRecord::decode(value), ledger.sources[std::string(key.substr(kMetaSources.size()))]);
      },
      [] { return Result<bool>(true); });
  KV_TRY(walked);
  KV_TRY(decoding.done());
  return ledger;
}

Result<void> walk_rejects(const Store& store, FunctionRef<void(std::uint64_t number, const RejectRecord& reject)> visit,
                          FunctionRef<Result<bool>()> between) {
  Decoding decoding;
  const auto walked = walk_pages(
      store, Space::meta, select(std::string(kMetaRejects), std::nullopt, std::nullopt),
      [&](std::string_view key, std::string_view value) {
        if (key.size() != kMetaRejects.size() + sizeof(std::uint64_t)) return;
        RejectRecord reject;
        decoding.keep(RejectRecord::decode(value), reject);
        if (decoding.done()) visit(codec::get_ordered<std::uint64_t>(key.data() + kMetaRejects.size()), reject);
      },
      [&]() -> Result<bool> {
        KV_TRY(decoding.done());
        return between();
      });
  KV_TRY(walked);
  return {};
}

}  // namespace kvingest::query
