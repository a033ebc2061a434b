#include "kvingest/thread_pool.hpp"

#include <algorithm>
#include <bit>
#include <system_error>

#include "base/check.hpp"
#include "base/thread.hpp"

namespace kvingest {
namespace {

/// About 50 microseconds: what putting a thread to sleep and waking it costs, twice over. Where there are more threads
/// than CPUs, whoever spins keeps from the CPU the one that is waited for.
constexpr std::uint32_t kSpins = 2'000;
constexpr std::uint32_t kSpinsCrowded = 20;

/// With so many pieces for each thread one that is late at the end is little of the whole.
constexpr std::size_t kPiecesPerThread = 8;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::start(const Options& options) {
  auto cpus = allowed_cpus();
  KV_TRY(cpus);
  const std::size_t workers = options.workers == kOtherCpus ? cpus->size() - 1 : options.workers;
  if (workers > kWorkersMax)
    return fail(Code::invalid_argument, "a thread pool of {} workers; at most {}", workers, kWorkersMax);
  std::unique_ptr<ThreadPool> pool(new ThreadPool(workers < cpus->size()));
  // A worker says whether its pin took before it is waited for: nothing runs in a place that was not asked for.
  std::vector<Result<void>> pins(workers);
  for (std::size_t i = 0; i < workers; ++i) {
    const int cpu = (*cpus)[(i + 1) % cpus->size()];
    try {
      pool->workers_.emplace_back([&pins, &options, self = pool.get(), i, cpu] {
        name_this_thread(options.name);
        if (options.pinned) pins[i] = pin_this_thread(cpu);
        self->started_.fetch_add(1);
        self->started_.notify_one();  // Of the pool, not of this function: it may have returned by now.
        self->work(i);
      });
    } catch (const std::system_error& error) {
      pool->wait_until_started(i);
      return fail(error.code().value(), "start worker {} of a thread pool", i + 1);
    }
  }
  pool->wait_until_started(workers);
  for (Result<void>& pin : pins) KV_TRY(std::move(pin));
  return pool;
}

ThreadPool::ThreadPool(bool may_spin) noexcept : spins_(may_spin ? kSpins : kSpinsCrowded) {}

ThreadPool::~ThreadPool() {
  for (const Gate& gate : gates_) KV_ASSERT(!gate.taken);  // A call is running.
  open_.fetch_or(kStop);
  open_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::wait_until_started(std::size_t workers) {
  for (std::uint32_t now = started_; now != workers; now = started_) started_.wait(now);
}

void ThreadPool::parallel_for(std::size_t count, std::size_t grain, Body body) {
  if (count == 0) return;
  if (grain == 0) grain = count / (threads() * kPiecesPerThread);
  grain = std::clamp<std::size_t>(grain, 1, count);
  std::uint32_t bit = 0;
  Gate* const gate = grain == count || workers_.empty() ? nullptr : take_gate(bit);
  if (gate == nullptr) {  // Nobody could help, or every gate is in use.
    for (std::size_t begin = 0; begin < count;) {
      const std::size_t end = begin + std::min(grain, count - begin);
      body(begin, end);
      begin = end;
    }
    return;
  }
  gate->body = &body;
  gate->count = count;
  gate->grain = grain;
  gate->pieces = (count - 1) / grain + 1;
  gate->next.store(0, std::memory_order_relaxed);
  gate->failed.store(false, std::memory_order_relaxed);
  share(*gate, bit);
  const std::exception_ptr failure = std::exchange(gate->failure, nullptr);
  gate->taken.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

ThreadPool::Gate* ThreadPool::take_gate(std::uint32_t& bit) noexcept {
  for (unsigned i = 0; i < kLoopsMax; ++i) {
    Gate& gate = gates_[i];
    if (gate.taken.load(std::memory_order_relaxed) || gate.taken.exchange(true, std::memory_order_acquire)) continue;
    bit = std::uint32_t{1} << i;
    return &gate;
  }
  return nullptr;
}

/// Opens the gate, works, and closes it: on return nobody is inside and nobody can enter.
void ThreadPool::share(Gate& gate, std::uint32_t bit) {
  gate.state.store(kOpen, std::memory_order_release);
  // In one order for all with what a worker does before it sleeps: one of the two sees the other.
  open_.fetch_or(bit, std::memory_order_seq_cst);
  const std::uint32_t sleepers = sleepers_.load(std::memory_order_seq_cst);
  if (sleepers != 0 && gate.pieces > sleepers) {
    open_.notify_all();
  } else if (sleepers != 0) {
    for (std::size_t helper = 1; helper < gate.pieces; ++helper) open_.notify_one();
  }
  run_pieces(gate, bit);
  open_.fetch_and(~bit, std::memory_order_relaxed);
  if (gate.state.fetch_and(~kOpen, std::memory_order_acquire) != kOpen) wait_until_left(gate);
}

void ThreadPool::run_pieces(Gate& gate, std::uint32_t bit) noexcept {
  for (;;) {
    const std::size_t piece = gate.next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= gate.pieces) return;
    // There is nothing here for others any more: they need not look while this piece runs.
    if (piece + 1 == gate.pieces) open_.fetch_and(~bit, std::memory_order_relaxed);
    const std::size_t begin = piece * gate.grain;
    try {
      (*gate.body)(begin, begin + std::min(gate.grain, gate.count - begin));
    } catch (...) {
      if (!gate.failed.exchange(true, std::memory_order_relaxed)) gate.failure = std::current_exception();
      gate.next.store(gate.pieces, std::memory_order_relaxed);
      open_.fetch_and(~bit, std::memory_order_relaxed);
    }
  }
}

void ThreadPool::wait_until_left(Gate& gate) const {
  for (std::uint32_t spin = 0; spin < spins_; ++spin) {
    if (gate.state.load(std::memory_order_acquire) == 0) return;
    relax();
  }
  for (std::uint32_t now = gate.state.load(std::memory_order_acquire); now != 0;
       now = gate.state.load(std::memory_order_acquire))
    gate.state.wait(now, std::memory_order_acquire);
}

bool ThreadPool::enter(Gate& gate) noexcept {
  std::uint32_t state = gate.state.load(std::memory_order_relaxed);
  while ((state & kOpen) != 0) {
    if (gate.state.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  }
  return false;
}

/// After this the gate may be another loop's; it stays a gate, so that telling it once too often does no harm.
void ThreadPool::leave(Gate& gate) noexcept {
  if (gate.state.fetch_sub(1, std::memory_order_release) == 1) gate.state.notify_one();
}

std::uint32_t ThreadPool::wait_for_work() {
  for (std::uint32_t spin = 0; spin < spins_; ++spin) {
    if (const std::uint32_t open = open_.load(std::memory_order_acquire); open != 0) return open;
    relax();
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  open_.wait(0, std::memory_order_seq_cst);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return open_.load(std::memory_order_acquire);
}

void ThreadPool::work(std::size_t number) {
  for (;;) {
    const std::uint32_t open = wait_for_work();
    if ((open & kStop) != 0) return;
    if (open == 0) continue;  // Others took all of it.
    // Workers begin to look in different places, so that they spread over several loops.
    const auto turn = static_cast<int>(number % kLoopsMax);
    const auto found = static_cast<unsigned>(std::countr_zero(std::rotr(open, turn)) + turn) % 32;
    Gate& gate = gates_[found];
    if (!enter(gate)) continue;
    run_pieces(gate, std::uint32_t{1} << found);
    leave(gate);
  }
}

}  // namespace kvingest
