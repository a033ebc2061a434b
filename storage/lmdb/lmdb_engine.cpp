// lmdb_engine.cpp -- the row of the lmdb engine, and its options.
#include <algorithm>

#include "base/quantity.hpp"
#include "storage/engine_rows.hpp"
#include "storage/lmdb/lmdb_store.hpp"

namespace kvingest {
namespace {

constexpr std::uint32_t kFormatVersion = 1;

constexpr EngineOption kOptions[] = {
    {"map", "64G", "address space reserved for the map; it is grown when full"},
    {"map_max", "64T", "the largest map: beyond it writes are refused as no_space, erasing still works"},
    {"readahead", "auto", "on, off, or auto: off where the data is larger than memory"},
    {"bulk", "false", "true: no syncs until the first sync or the end; a power cut before it destroys the store"},
};

/// Reads the options into `settings` and returns whether the bulk profile is wanted.
Result<bool> read_options(const EngineOptions& options, lmdb::Settings& settings) {
  const auto text = [&](const EngineOption& option) -> std::string_view {
    const auto given = options.find(option.name);
    return given == options.end() ? option.fallback : std::string_view(given->second);
  };
  auto map = parse_size(text(kOptions[0]));
  if (!map) return fail(std::move(map).error(), "lmdb: map");
  auto map_max = parse_size(text(kOptions[1]));
  if (!map_max) return fail(std::move(map_max).error(), "lmdb: map_max");
  settings.map_bytes_max = std::clamp(*map_max, lmdb::kMapBytesMin, lmdb::kMapBytesMax);
  settings.map_bytes = std::clamp(*map, lmdb::kMapBytesMin, settings.map_bytes_max);
  const std::string_view readahead = text(kOptions[2]);
  if (readahead != "auto" && readahead != "on" && readahead != "off")
    return fail(Code::invalid_argument, "lmdb: readahead={}: one of auto, on, off", readahead);
  settings.readahead = readahead == "on"    ? lmdb::Readahead::on
                       : readahead == "off" ? lmdb::Readahead::off
                                            : lmdb::Readahead::automatic;
  const std::string_view bulk = text(kOptions[3]);
  if (bulk != "true" && bulk != "false") return fail(Code::invalid_argument, "lmdb: bulk={}: true or false", bulk);
  return bulk == "true";
}

Result<void> check_lmdb(const EngineOptions& options) {
  lmdb::Settings ignored;
  KV_TRY(read_options(options, ignored));
  return {};
}

Result<std::unique_ptr<Store>> open_lmdb(const EngineContext& context) {
  lmdb::Settings settings{.dir = context.dir,
                          .read_only = context.read_only,
                          .fresh = context.fresh,
                          .posix = context.posix,
                          .notice = context.notice};
  const auto bulk = read_options(context.options, settings);
  KV_TRY(bulk);
  auto store = std::make_unique<lmdb::LmdbStore>(std::move(settings), *bulk);
  KV_TRY(store->open());
  return store;
}

}  // namespace

constinit const Engine kLmdbEngine{
    .name = "lmdb",
    .summary = "LMDB: the default; many reading processes, data larger than memory",
    .persistent = true,
    .shared_readers = true,
    .format_version = kFormatVersion,
    .options = kOptions,
    .missing = {},
    .check = check_lmdb,
    .open = open_lmdb,
};

}  // namespace kvingest
