// embed ENGINE DIR: a program that keeps its records in a store of kvingest.
#include <cstdio>
#include <string>

#include "kvingest/engine.hpp"
#include "kvingest/store.hpp"
#include "kvingest/write_batch.hpp"

namespace {

using kvingest::Result;

Result<void> run(const std::string& engine, const std::string& dir) {
  const auto spec = kvingest::parse_store_spec(engine);
  KV_TRY(spec);
  const auto store = kvingest::open_store(*spec, {.dir = dir});
  KV_TRY(store);

  kvingest::WriteBatch batch;
  batch.put("TSLA/2017-12-29", "311.35");
  batch.put("AAPL/2017-12-29", "169.23");
  KV_TRY((*store)->write(batch, kvingest::Durability::disk));  // On stable storage when it returns.

  int records = 0;
  const auto print = [&records](std::string_view key, std::string_view value) {
    std::printf("%.*s %.*s\n", static_cast<int>(key.size()), key.data(), static_cast<int>(value.size()), value.data());
    ++records;
    return true;
  };
  KV_TRY((*store)->scan({}, print));
  std::printf("%d records\n", records);
  return (*store)->close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: embed ENGINE DIR\n");
    return 2;
  }
  const auto done = run(argv[1], argv[2]);
  if (!done) std::fprintf(stderr, "embed: %s\n", done.error().text.c_str());
  return done ? 0 : 1;
}
