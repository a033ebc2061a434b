// The quick suite: all stores within a minute and a half on two CPUs, smaller runs of two other suites.
#include <algorithm>

#include "bench/suite.hpp"

namespace kvingest::bench {
namespace {

constexpr std::uint64_t kQuickMessages = 200'000;
constexpr std::uint64_t kQuickRepeat = 3;
constexpr std::uint64_t kKeys = 20'000;

}  // namespace

Needs quick_needs(const Settings& settings) {
  const Needs ingest = ingest_needs(settings);
  const Needs dbbench = dbbench_needs(settings);
  return {.disk_bytes = std::max(ingest.disk_bytes, dbbench.disk_bytes), .memory_bytes = dbbench.memory_bytes};
}

Result<void> run_quick_suite(Bench& bench) {
  Settings settings = bench.settings;
  settings.messages = std::min(settings.messages, kQuickMessages);
  settings.repeat = std::min(settings.repeat, kQuickRepeat);
  settings.second_batch = 0;
  settings.lines_only = true;
  if (!settings.items) settings.items = kKeys;
  Bench smaller{settings, bench.stores, bench.placement, bench.programs, bench.work_dir, bench.results};
  KV_TRY(run_ingest_suite(smaller));
  KV_TRY(run_dbbench_suite(smaller));
  bench.tables += smaller.tables;
  return {};
}

}  // namespace kvingest::bench
