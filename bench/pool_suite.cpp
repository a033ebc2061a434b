// The pool suite: what it costs to run a body on several threads and to wait for all, with nothing and with something
// to do in it, on as many threads as CPUs and on twice as many.
#include <atomic>
#include <chrono>

#include "base/thread.hpp"
#include "bench/micro.hpp"
#include "bench/pool_rivals.hpp"

namespace kvingest::bench {
namespace {

/// Threads of OpenMP spin for milliseconds when a loop is over, on the CPU that the next row needs.
constexpr double kSettleNs = 20e6;

constexpr unsigned kGrainsUs[] = {0, 1, 10, 100};

/// A chain of multiplications, each of which waits for the one before: time that no clock is read for.
void compute(std::uint64_t steps) {
  std::uint64_t x = 1;
  for (std::uint64_t i = 0; i < steps; ++i) {
    x *= 0x5851F42D4C957F2D;
    asm volatile("" : "+r"(x));
  }
}

/// Steps of compute() that take a microsecond here.
std::uint64_t steps_of_a_microsecond() {
  constexpr std::uint64_t kSteps = 3'000'000;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    compute(kSteps);
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  return static_cast<std::uint64_t>(kSteps / best);
}

Result<void> add_row(MicroPlan& plan, const ForkJoinKind& kind, std::size_t threads, unsigned grain_us,
                     std::uint64_t steps) {
  MicroRow row;
  row.group = fmt::format("{} threads, {} us of work in each", threads, grain_us);
  row.name = kind.name;
  row.subject.workload = "fork_join";
  row.subject.params = {{"threads", threads}, {"work_us", grain_us}};
  row.missing = kind.missing;
  if (row.missing.empty()) {
    auto made = kind.make(threads);
    KV_TRY(made);
    const std::shared_ptr<ForkJoin> pool = *std::move(made);
    row.run = [pool, steps, grain_us] { pool->fork_join([&] { compute(grain_us * steps); }); };
    row.check = [pool, threads]() -> Result<void> {
      std::atomic<std::size_t> calls{0};
      constexpr std::size_t kRounds = 100;
      for (std::size_t i = 0; i < kRounds; ++i) pool->fork_join([&] { ++calls; });
      if (calls == kRounds * threads) return {};
      return fail(Code::failed, "{} bodies ran and not {}", calls.load(), kRounds * threads);
    };
  }
  plan.rows.push_back(std::move(row));
  return {};
}

}  // namespace

Result<void> run_pool_suite(Bench& bench) {
  auto cpus = allowed_cpus();
  KV_TRY(cpus);
  const std::uint64_t steps = steps_of_a_microsecond();
  MicroPlan plan{.suite = "pool", .item = "join"};
  plan.settle_ns = kSettleNs;
  for (const std::size_t threads : {std::max<std::size_t>(cpus->size(), 2), 2 * cpus->size()}) {
    for (const unsigned grain_us : kGrainsUs) {
      for (const ForkJoinKind& kind : fork_join_kinds()) KV_TRY(add_row(plan, kind, threads, grain_us, steps));
    }
  }
  plan.ratios = {{"new threads", "ratio_to_new_threads"}, {"openmp", "ratio_to_openmp"}};
  plan.notes = {"ns/join: from the call until all bodies have run. /NAME: how many times as fast as NAME, in the same",
                "repeat. That each body runs once is checked before. The caller of thread_pool runs itself what no",
                "worker has begun, so with no work in it a loop may be over before anybody came."};
  return run_micro(bench, plan);
}

}  // namespace kvingest::bench
