#include "query/convert.hpp"

#include <xxhash.h>

#include "kvingest/ledger.hpp"
#include "query/page_batch.hpp"
#include "query/pages.hpp"

namespace kvingest::query {
namespace {

constexpr Space kSpaces[] = {Space::records, Space::meta};

/// What the mark holds: the space in which the copy goes on (0 records, 1 meta), and the last key copied.
struct Progress {
  Space space = Space::records;
  std::optional<std::string> last_key;

  [[nodiscard]] std::string encode() const {
    return (space == Space::meta ? "1" : "0") + last_key.value_or(std::string());
  }
  static Progress decode(std::string_view bytes) {
    Progress progress;
    if (bytes.empty()) return progress;
    progress.space = bytes[0] == '1' ? Space::meta : Space::records;
    if (bytes.size() > 1) progress.last_key = bytes.substr(1);
    return progress;
  }
};

class Conversion {
 public:
  Conversion(const Store& source, Store& target, const GoOn& go_on) : source_(source), target_(target), go_on_(go_on) {}

  Result<ConvertReport> run() {
    KV_TRY(find_start());
    for (const Space space : kSpaces) {
      if (space < progress_.space) continue;
      if (space != progress_.space) progress_ = {.space = space, .last_key = std::nullopt};
      KV_TRY(copy_space());
    }
    KV_TRY(compare());
    WriteBatch end;
    end.erase_meta(kMetaConversion);
    KV_TRY(target_.write(end, Durability::disk));
    return report_;
  }

 private:
  // Where the last run stopped; else the target has to be empty.
  Result<void> find_start() {
    const auto unfinished = source_.get(Space::meta, kMetaConversion, [](std::string_view) {});
    KV_TRY(unfinished);
    if (*unfinished) return fail(Code::invalid_argument, "convert: the source is itself an unfinished conversion");
    const auto resumed =
        target_.get(Space::meta, kMetaConversion, [&](std::string_view value) { progress_ = Progress::decode(value); });
    KV_TRY(resumed);
    report_.resumed = *resumed;
    if (*resumed) return {};
    for (const Space space : kSpaces) {
      const auto entries = target_.scan(space, {.limit = 1}, [](std::string_view, std::string_view) { return false; });
      KV_TRY(entries);
      if (*entries != 0)
        return fail(Code::invalid_argument, "convert: the target holds a store already; name a new directory");
    }
    WriteBatch begin;
    begin.put_meta(kMetaConversion, progress_.encode());
    return target_.write(begin, Durability::disk);
  }

  Result<void> copy_space() {
    Selection selection;
    if (progress_.last_key) selection.first = *progress_.last_key + '\0';
    PageBatch page;
    const auto copied = walk_pages(
        source_, progress_.space, selection,
        [&](std::string_view key, std::string_view value) {
          progress_.last_key = key;
          page.add(progress_.space, key, value);
          ++report_.copied;
        },
        [&]() -> Result<bool> {
          WriteBatch& batch = page.finish();
          batch.put_meta(kMetaConversion, progress_.encode());
          KV_TRY(target_.write(batch, Durability::kernel));
          batch.clear();
          KV_TRY(go_on_(report_.copied));
          return true;
        });
    KV_TRY(copied);
    return target_.sync();
  }

  Result<void> compare() {
    const auto theirs = digest_of(source_, go_on_);
    KV_TRY(theirs);
    const auto ours = digest_of(target_, go_on_);
    KV_TRY(ours);
    report_.digest = *ours;
    if (*theirs == *ours) return {};
    return fail(Code::corrupt, "convert: {} entries with digest {:016x} became {} with digest {:016x}", theirs->entries,
                theirs->sum, ours->entries, ours->sum);
  }

  const Store& source_;
  Store& target_;
  const GoOn& go_on_;
  Progress progress_;
  ConvertReport report_;
};

std::uint64_t hash_of(Space space, std::string_view key, std::string_view value) {
  // Chained, so that bytes cannot move from the key to the value unseen.
  const XXH64_hash_t of_key = XXH3_64bits_withSeed(key.data(), key.size(), space == Space::meta ? 1 : 0);
  return XXH3_64bits_withSeed(value.data(), value.size(), of_key);
}

}  // namespace

Result<Digest> digest_of(const Store& store, const GoOn& go_on) {
  Digest digest;
  for (const Space space : kSpaces) {
    const auto walked = walk_pages(
        store, space, {},
        [&](std::string_view key, std::string_view value) {
          if (space == Space::meta && key == kMetaConversion) return;
          ++digest.entries;
          digest.sum += hash_of(space, key, value);
        },
        [&]() -> Result<bool> {
          KV_TRY(go_on(digest.entries));
          return true;
        });
    KV_TRY(walked);
  }
  return digest;
}

Result<ConvertReport> convert(const Store& source, Store& target, const GoOn& go_on) {
  return Conversion(source, target, go_on).run();
}

}  // namespace kvingest::query
