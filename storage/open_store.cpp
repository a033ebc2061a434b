// open_store.cpp -- from a choice of engine and a directory to an open store.
#include <utility>

#include "base/check.hpp"
#include "kvingest/engine.hpp"
#include "storage/acked.hpp"
#include "storage/checked_store.hpp"
#include "storage/reserve.hpp"
#include "storage/store_directory.hpp"

namespace kvingest {
namespace {

void drop_notice(std::string_view) {}

// The engine that a marker names. Fails with: unsupported.
Result<const Engine*> marked_engine(const Marker& marker, const std::filesystem::path& dir) {
  for (const Engine* engine : engines()) {
    if (engine->name == marker.engine) return engine;
  }
  return fail(Code::unsupported, "{} holds a store of engine {}, which this kvingest does not know", dir.native(),
              marker.engine);
}

// Holds what the engine came back with against what had been answered.
// Fails with: corrupt.
Result<void> check_acknowledged(const Store& store, const Acked& acked, const EngineContext& context) {
  const std::uint64_t last = store.last_batch();
  if (last < acked.on_disk.batch) {
    return fail(Code::corrupt,
                "{} acknowledged batches are missing: {} ends with batch {}, but batch {} (up to record number {}) had "
                "been on disk; restore a backup, or delete {} to go on without them",
                acked.on_disk.batch - last, context.dir.native(), last, acked.on_disk.batch, acked.on_disk.seq,
                (context.dir / kAckedName).native());
  }
  if (last < acked.acknowledged.batch) {
    context.notice(fmt::format("the last {} batches of {} are gone: they had been acknowledged without a sync",
                               acked.acknowledged.batch - last, context.dir.native()));
  }
  return {};
}

// Opens ACKED for the writer, after making it where it is missing.
Result<AckedFile> open_acked(const Store& store, const EngineContext& context) {
  auto acked = read_acked(*context.posix, context.dir);
  KV_TRY(acked);
  if (context.fresh || !*acked) {
    if (!context.fresh) {
      context.notice(fmt::format("{} was missing: whether acknowledged batches are missing, too, cannot be told",
                                 (context.dir / kAckedName).native()));
    }
    KV_TRY(create_acked(*context.posix, context.dir, Acked{}));
  }
  auto file = AckedFile::open(*context.posix, context.dir);
  KV_TRY(file);
  const BatchMark now{.batch = store.last_batch(), .seq = 0};
  if (file->last().acknowledged.batch != now.batch) KV_TRY(file->record(now, file->last().on_disk));
  return file;
}

Result<std::unique_ptr<Store>> try_to_open(const Engine& engine, const StoreOptions& options, EngineContext context) {
  auto directory = StoreDirectory::open(engine, options, *context.posix);
  KV_TRY(directory);
  context.dir = options.dir;
  context.fresh = directory->fresh();
  // Read first: where others write meanwhile, the engine can only have more.
  auto acked = context.fresh ? Result<std::optional<Acked>>() : read_acked(*context.posix, context.dir);
  KV_TRY(acked);
  auto store = engine.open(context);
  if (!store) return fail(std::move(store).error(), "open store {} in {}", engine.name, context.dir.native());
  if (*acked) KV_TRY(check_acknowledged(**store, **acked, context));
  std::optional<AckedFile> file;
  if (!options.read_only) {
    auto opened = open_acked(**store, context);
    KV_TRY(opened);
    file.emplace(std::move(*opened));
    KV_TRY(directory->mark_ready());
  }
  return std::make_unique<CheckedStore>(std::move(*store), std::move(*directory), std::move(file), options.read_only);
}

// On a full disk the reserve makes the room that opening takes.
Result<std::unique_ptr<Store>> open_in_directory(const Engine& engine, const StoreOptions& options,
                                                 const EngineContext& context) {
  auto store = try_to_open(engine, options, context);
  const bool full = !store && store.error().code == Code::no_space && !options.read_only;
  if (!full || !Reserve(options.dir).give_up()) return store;
  context.notice(
      fmt::format("the disk of {} is full: its reserve is given up to open the store", options.dir.native()));
  return try_to_open(engine, options, context);
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(const StoreSpec& spec, const StoreOptions& options) {
  KV_ASSERT(spec.engine != nullptr);
  const Engine& engine = *spec.engine;
  if (!engine.missing.empty()) {
    return fail(Code::unsupported, "store '{}' is not in this build: {}", engine.name, engine.missing);
  }
  EngineContext context;
  context.options = spec.options;
  context.read_only = options.read_only;
  context.posix = options.posix != nullptr ? options.posix : &Posix::real();
  context.notice = options.notice ? options.notice : drop_notice;
  if (engine.persistent) return open_in_directory(engine, options, context);
  auto store = engine.open(context);
  KV_TRY(store);
  return std::make_unique<CheckedStore>(std::move(*store), std::nullopt, std::nullopt, false);
}

Result<std::unique_ptr<Store>> open_store(const StoreOptions& options) {
  auto marker = read_marker(options.dir);
  KV_TRY(marker);
  auto engine = marked_engine(*marker, options.dir);
  KV_TRY(engine);
  return open_store(StoreSpec{.engine = *engine, .options = {}}, options);
}

}  // namespace kvingest
