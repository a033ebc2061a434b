// The seed suite: the experiments of this project's ancestor, one after the other. What it did with codecs, threads,
// trees and receiving is in the suites codec, pool, tree and net.
#include <algorithm>
#include <array>
#include <chrono>

#include "bench/clock.hpp"
#include "bench/seed.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace kvingest::bench {
namespace {

struct SeedPart {
  std::string_view name;
  Result<void> (*run)(Bench& bench);
};

constexpr std::array kSeedParts = {
    SeedPart{"intstore", run_seed_intstore}, SeedPart{"seekwrite", run_seed_seekwrite},
    SeedPart{"sender", run_seed_sender},     SeedPart{"pages", run_seed_pages},
    SeedPart{"maps", run_seed_maps},         SeedPart{"calls", run_seed_calls},
};

}  // namespace

double cycles_per_ns() {
#if defined(__x86_64__)
  constexpr std::chrono::milliseconds kLook{20};
  const auto start = Clock::now();
  const std::uint64_t first = __rdtsc();
  auto now = Clock::now();
  while (now - start < kLook) now = Clock::now();
  return static_cast<double>(__rdtsc() - first) / std::chrono::duration<double, std::nano>(now - start).count();
#else
  return 0;
#endif
}

/// The largest map and its keys; files of seek and write, and of the pages.
Needs seed_needs(const Settings& settings) {
  constexpr std::uint64_t kLargestMap = 10'000'000;
  constexpr std::uint64_t kBytesPerKey = 170;  // All four containers at once.
  constexpr std::uint64_t kBesideBytes = std::uint64_t{1} << 30;
  return {.disk_bytes = 2 * kBesideBytes,
          .memory_bytes = settings.items.value_or(kLargestMap) * kBytesPerKey + kBesideBytes};
}

Result<void> run_seed_suite(Bench& bench) {
  const std::string& wanted = bench.settings.part;
  const bool is_known = wanted == "all" || std::any_of(kSeedParts.begin(), kSeedParts.end(),
                                                       [&](const SeedPart& part) { return part.name == wanted; });
  if (!is_known) return fail(Code::invalid_argument, "seed: --part {} is a part of stores", wanted);
  for (const SeedPart& part : kSeedParts) {
    if (wanted != "all" && part.name != wanted) continue;
    if (!bench.settings.quiet) fmt::print(stderr, "seed: {}\n", part.name);
    KV_TRY(part.run(bench));
  }
  return {};
}

}  // namespace kvingest::bench
