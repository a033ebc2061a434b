// open_store.cpp -- from a choice of engine and a directory to an open store.
#include <utility>

#include "base/check.hpp"
#include "kvingest/engine.hpp"
#include "storage/checked_store.hpp"
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
  std::optional<StoreDirectory> directory;
  if (engine.persistent) {
    auto opened = StoreDirectory::open(engine, options, *context.posix);
    KV_TRY(opened);
    directory.emplace(std::move(*opened));
    context.dir = options.dir;
    context.fresh = directory->fresh();
  }
  auto store = engine.open(std::move(context));
  KV_TRY(store);
  if (directory) KV_TRY(directory->mark_ready());
  return std::make_unique<CheckedStore>(std::move(*store), std::move(directory), options.read_only);
}

Result<std::unique_ptr<Store>> open_store(const StoreOptions& options) {
  auto marker = read_marker(options.dir);
  KV_TRY(marker);
  auto engine = marked_engine(*marker, options.dir);
  KV_TRY(engine);
  return open_store(StoreSpec{.engine = *engine, .options = {}}, options);
}

}  // namespace kvingest
