// ThreadPool: every number once, whoever calls and whatever is thrown; and nothing is touched after a call.
#include "kvingest/thread_pool.hpp"

#include <pthread.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.hpp"
#include "tests/support/expect.hpp"

namespace kvingest {
namespace {

std::unique_ptr<ThreadPool> pool_of(std::size_t workers) {
  auto pool = ThreadPool::start({.workers = workers, .pinned = true, .name = "test"});
  REQUIRE_OK(pool);
  return std::move(*pool);
}

/// How often each number was passed to the body.
std::vector<int> passed(ThreadPool& pool, std::size_t count, std::size_t grain) {
  std::vector<int> times(count);
  pool.parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) ++times[i];
  });
  return times;
}

TEST_CASE("each number is passed once, for every number of workers and size of pieces") {
  for (const std::size_t workers : {0U, 1U, 2U, 7U}) {
    const auto pool = pool_of(workers);
    CHECK(pool->threads() == workers + 1);
    for (const std::size_t count : {0U, 1U, 2U, 3U, 100U, 1001U}) {
      for (const std::size_t grain : {0U, 1U, 2U, 7U, 5000U})
        CHECK(passed(*pool, count, grain) == std::vector<int>(count, 1));
    }
  }
}

TEST_CASE("pieces have the size that was asked for, but for the last") {
  const auto pool = pool_of(2);
  std::mutex mutex;
  std::set<std::pair<std::size_t, std::size_t>> pieces;
  pool->parallel_for(10, 4, [&](std::size_t begin, std::size_t end) {
    const std::scoped_lock lock(mutex);
    pieces.emplace(begin, end);
  });
  CHECK(pieces == std::set<std::pair<std::size_t, std::size_t>>{{0, 4}, {4, 8}, {8, 10}});
}

TEST_CASE("workers are as many as the CPUs but one, pinned and named") {
  auto pool = ThreadPool::start({});
  REQUIRE_OK(pool);
  CHECK((*pool)->threads() == allowed_cpus()->size());

  const auto pinned = pool_of(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> arrived{0};
  std::mutex mutex;
  std::vector<std::size_t> cpus_of_workers;
  std::vector<std::string> names;
  // Three pieces that wait for one another: each must be on a thread of its own.
  pinned->parallel_for(3, 1, [&](std::size_t, std::size_t) {
    for (++arrived; arrived < 3;) std::this_thread::yield();
    if (std::this_thread::get_id() == caller) return;
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    const std::scoped_lock lock(mutex);
    cpus_of_workers.push_back(allowed_cpus()->size());
    names.emplace_back(name);
  });
  CHECK(cpus_of_workers == std::vector<std::size_t>{1, 1});
  CHECK(names == std::vector<std::string>{"test", "test"});
}

TEST_CASE("a pool that cannot be is refused") {
  CHECK_CODE(ThreadPool::start({.workers = ThreadPool::kWorkersMax + 1}), Code::invalid_argument);
}

TEST_CASE("an exception comes out at the caller, from whichever thread, and the pool goes on") {
  const auto pool = pool_of(2);
  for (std::size_t bad = 0; bad < 100; ++bad) {
    const auto run = [&] {
      pool->parallel_for(100, 1, [&](std::size_t begin, std::size_t) {
        if (begin == bad) throw std::runtime_error(std::to_string(begin));
      });
    };
    CHECK_THROWS_WITH(run(), std::to_string(bad));
  }
  // All of them throw: one gets through, and none is left for the next loop.
  const auto all = [&] {
    pool->parallel_for(50, 1, [](std::size_t, std::size_t) { throw std::runtime_error("all"); });
  };
  CHECK_THROWS_WITH(all(), "all");
  CHECK(passed(*pool, 1000, 1) == std::vector<int>(1000, 1));
  // Where the caller is alone it is no different.
  const auto alone = pool_of(0);
  CHECK_THROWS_WITH(alone->parallel_for(2, 1, [](std::size_t, std::size_t) { throw std::runtime_error("one"); }),
                    "one");
}

TEST_CASE("pieces that were not begun when one threw are left out") {
  const auto pool = pool_of(1);
  std::atomic<std::size_t> done{0};
  const auto run = [&] {
    pool->parallel_for(1'000'000, 1, [&](std::size_t, std::size_t) {
      if (done.fetch_add(1) == 10) throw std::runtime_error("enough");
    });
  };
  CHECK_THROWS_WITH(run(), "enough");
  CHECK(done < 1'000'000);
}

TEST_CASE("a loop within a loop, and one deeper than there are gates, passes each number once") {
  const auto pool = pool_of(3);
  std::atomic<int> total{0};
  pool->parallel_for(20, 1, [&](std::size_t, std::size_t) {
    pool->parallel_for(20, 1, [&](std::size_t, std::size_t) {
      pool->parallel_for(20, 3, [&](std::size_t begin, std::size_t end) { total += static_cast<int>(end - begin); });
    });
  });
  CHECK(total == 20 * 20 * 20);

  int deepest = 0;
  const std::function<void(int)> nest = [&](int depth) {
    if (depth == 100) {
      ++deepest;
      return;
    }
    pool->parallel_for(2, 1, [&](std::size_t begin, std::size_t) {
      if (begin == 0) nest(depth + 1);
    });
  };
  nest(0);
  CHECK(deepest == 1);
}

TEST_CASE("an exception of an inner loop passes through the outer one") {
  const auto pool = pool_of(2);
  const auto run = [&] {
    pool->parallel_for(4, 1, [&](std::size_t outer, std::size_t) {
      pool->parallel_for(4, 1, [&](std::size_t inner, std::size_t) {
        if (outer == 3 && inner == 2) throw std::runtime_error("inner");
      });
    });
  };
  CHECK_THROWS_WITH(run(), "inner");
}

TEST_CASE("many threads may use one pool at once") {
  const auto pool = pool_of(2);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        if (passed(*pool, 64, 1) != std::vector<int>(64, 1)) ++wrong;
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("invoke runs each task once, and waits for all of them") {
  const auto pool = pool_of(1);
  int first = 0;
  int second = 0;
  std::string third;
  pool->invoke([&] { ++first; }, [&] { ++second; }, [&] { third = "done"; });
  CHECK(first == 1);
  CHECK(second == 1);
  CHECK(third == "done");
}

/// A loop whose body and all it refers to live in this frame, which is gone when it returns.
[[gnu::noinline]] std::size_t sum_in_a_frame(ThreadPool& pool, std::size_t count) {
  std::atomic<std::size_t> sum{0};
  const std::unique_ptr<std::size_t> factor = std::make_unique<std::size_t>(3);
  pool.parallel_for(count, 1, [&](std::size_t begin, std::size_t) { sum += begin * *factor; });
  return sum;
}

/// Writes over the stack that the frame above had: a worker that still looked there would read this.
[[gnu::noinline]] void overwrite_stack() {
  volatile char junk[2048];
  for (volatile char& byte : junk) byte = 0x5A;
}

TEST_CASE("what a body refers to may be gone the moment the call returns") {
  const auto pool = pool_of(3);
  for (std::size_t round = 0; round < 20'000; ++round) {
    const std::size_t count = 2 + round % 5;
    REQUIRE(sum_in_a_frame(*pool, count) == 3 * count * (count - 1) / 2);
    overwrite_stack();
  }
}

TEST_CASE("what a body refers to may be gone when the call throws") {
  const auto pool = pool_of(3);
  for (int round = 0; round < 5'000; ++round) {
    try {
      const auto text = std::make_unique<std::string>("thrown at " + std::to_string(round));
      pool->parallel_for(8, 1, [&](std::size_t begin, std::size_t) {
        if (begin == static_cast<std::size_t>(round % 8)) throw std::runtime_error(*text);
      });
      FAIL("nothing was thrown");
    } catch (const std::runtime_error& error) {
      CHECK(error.what() == "thrown at " + std::to_string(round));
    }
    overwrite_stack();
  }
}

TEST_CASE("a pool may be started and ended at any moment, its workers asleep or not") {
  for (int round = 0; round < 100; ++round) {
    const auto pool = pool_of(3);
    if (round % 2 == 0) CHECK(passed(*pool, 10, 1) == std::vector<int>(10, 1));
  }
}

}  // namespace
}  // namespace kvingest
