// kvingest/thread_pool.hpp -- threads that are started once and share out loops: fork and join in about a microsecond.
//
//   auto pool = kvingest::ThreadPool::start({});
//   (*pool)->parallel_for(files.size(), 1, [&](std::size_t begin, std::size_t end) { ... files[begin] ... });
//
// The calling thread works too, so a pool of N workers is N + 1 threads. A loop is split into pieces; whoever is free
// takes the next. It passes a gate: while that is open workers may enter, and the caller, having found no further
// piece, closes it and waits for those inside. A worker that was late is not waited for: with more threads than CPUs
// the loop is as fast as with those that run.
//
// Threads:  any thread may call, also several at once, and also a worker from within a loop (nested): the inner loop is
//           shared out in the same way, and its caller waits only for pieces that run, so nothing can lock up. Beyond
//           kLoopsMax loops at once a loop runs on its caller alone.
// Lifetime: parallel_for() and invoke() return when no worker can touch the body or what it refers to any more, also
//           when they throw; so there is no way to hand the pool a reference that outlives its object. The pool must
//           outlive its calls, which the destructor checks.
// Errors:   the first exception that a body throws is thrown to the caller; pieces not begun by then are left out.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kvingest/function_ref.hpp"
#include "kvingest/result.hpp"

namespace kvingest {

class ThreadPool {
 public:
  using Body = FunctionRef<void(std::size_t begin, std::size_t end)>;

  /// Loops that can be shared out at the same time.
  static constexpr unsigned kLoopsMax = 31;
  /// A worker for each CPU that we may use but one, which the caller has.
  static constexpr std::size_t kOtherCpus = ~std::size_t{0};
  static constexpr std::size_t kWorkersMax = 4096;

  struct Options {
    std::size_t workers = kOtherCpus;
    bool pinned = true;         ///< Worker i keeps to CPU i + 1 of those we may use, the first after the last.
    std::string name = "pool";  ///< Of the threads, as ps and top show them.
  };

  /// Starts the workers. Fails with: invalid_argument (too many), io_error (no thread, no pin).
  [[nodiscard]] static Result<std::unique_ptr<ThreadPool>> start(const Options& options);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  /// Ends the workers. No call may be running.
  ~ThreadPool();

  /// Those that work on a loop: the workers and the caller.
  [[nodiscard]] std::size_t threads() const noexcept { return workers_.size() + 1; }

  /// Calls `body` with ranges that make up [0, count), each once, of `grain` numbers but for the last; 0 lets the pool
  /// choose. Throws what a body throws.
  void parallel_for(std::size_t count, std::size_t grain, Body body);

  /// Calls each of `tasks`, at the same time as far as threads go. Throws what a task throws.
  template <class... Tasks>
  void invoke(Tasks&&... tasks) {
    const FunctionRef<void()> all[] = {FunctionRef<void()>(tasks)...};
    parallel_for(sizeof...(Tasks), 1, [&all](std::size_t begin, std::size_t) { all[begin](); });
  }

 private:
  /// A loop that is shared out. Gates belong to the pool and are used again: what a late worker looks at is always
  /// there.
  struct alignas(64) Gate {
    std::atomic<std::uint32_t> state{0};  ///< kOpen, and how many workers are inside.
    std::atomic<bool> taken{false};       ///< Some caller has it.
    // Written by the caller before it opens the gate.
    const Body* body = nullptr;
    std::size_t count = 0;
    std::size_t grain = 0;
    std::size_t pieces = 0;
    alignas(64) std::atomic<std::size_t> next{0};  ///< The piece that nobody has yet.
    std::atomic<bool> failed{false};
    std::exception_ptr failure;  ///< Of whoever set `failed`; read when all have left.
  };
  static constexpr std::uint32_t kOpen = std::uint32_t{1} << 31;
  static constexpr std::uint32_t kStop = std::uint32_t{1} << kLoopsMax;

  explicit ThreadPool(bool may_spin) noexcept;
  void wait_until_started(std::size_t workers);
  void work(std::size_t number);
  std::uint32_t wait_for_work();
  Gate* take_gate(std::uint32_t& bit) noexcept;
  void share(Gate& gate, std::uint32_t bit);
  void run_pieces(Gate& gate, std::uint32_t bit) noexcept;
  void wait_until_left(Gate& gate) const;
  static bool enter(Gate& gate) noexcept;
  static void leave(Gate& gate) noexcept;

  std::array<Gate, kLoopsMax> gates_;
  alignas(64) std::atomic<std::uint32_t> open_{0};  ///< Bit i: gate i has pieces left. kStop: the end.
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> started_{0};
  const std::uint32_t spins_;  ///< Looks before a thread goes to sleep.
  std::vector<std::thread> workers_;
};

}  // namespace kvingest
