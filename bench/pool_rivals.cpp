#include "bench/pool_rivals.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "kvingest/thread_pool.hpp"

namespace kvingest::bench {
namespace {

class OurPool final : public ForkJoin {
 public:
  OurPool(std::unique_ptr<ThreadPool> pool, std::size_t threads) : pool_(std::move(pool)), threads_(threads) {}
  void fork_join(FunctionRef<void()> body) override {
    pool_->parallel_for(threads_, 1, [&](std::size_t, std::size_t) { body(); });
  }

 private:
  std::unique_ptr<ThreadPool> pool_;
  std::size_t threads_;
};

Result<std::unique_ptr<ForkJoin>> make_our_pool(std::size_t threads) {
  auto pool = ThreadPool::start({.workers = threads - 1, .name = "bench"});
  KV_TRY(pool);
  return std::make_unique<OurPool>(*std::move(pool), threads);
}

/// A thread for each body but the caller's, created and joined each time.
class NewThreads final : public ForkJoin {
 public:
  explicit NewThreads(std::size_t threads) : others_(threads - 1) {}
  void fork_join(FunctionRef<void()> body) override {
    for (std::thread& other : others_) other = std::thread([&body] { body(); });
    body();
    for (std::thread& other : others_) other.join();
  }

 private:
  std::vector<std::thread> others_;
};

/// The pool of textbooks: a mutex, a queue that is a counter, and two condition variables.
class MutexPool final : public ForkJoin {
 public:
  explicit MutexPool(std::size_t threads) {
    for (std::size_t i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  MutexPool(const MutexPool&) = delete;
  MutexPool& operator=(const MutexPool&) = delete;
  ~MutexPool() override {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    begin_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void fork_join(FunctionRef<void()> body) override {
    {
      const std::scoped_lock lock(mutex_);
      body_ = &body;
      waiting_ = running_ = threads_.size();
    }
    begin_.notify_all();
    body();
    std::unique_lock lock(mutex_);
    end_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      begin_.wait(lock, [this] { return stopped_ || waiting_ > 0; });
      if (stopped_) return;
      --waiting_;
      const FunctionRef<void()>* const body = body_;
      lock.unlock();
      (*body)();
      lock.lock();
      if (--running_ == 0) end_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable begin_;
  std::condition_variable end_;
  const FunctionRef<void()>* body_ = nullptr;  // These four: under mutex_.
  std::size_t waiting_ = 0;
  std::size_t running_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

#if defined(_OPENMP)
constexpr std::string_view kNoOpenMp;
class OpenMp final : public ForkJoin {
 public:
  explicit OpenMp(std::size_t threads) : threads_(static_cast<int>(threads)) {}
  void fork_join(FunctionRef<void()> body) override {
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (int i = 0; i < threads_; ++i) body();
  }

 private:
  int threads_;
};
#else
constexpr std::string_view kNoOpenMp = "not in this build: its compiler has no OpenMP";
using OpenMp = NewThreads;
#endif

template <class Kind>
Result<std::unique_ptr<ForkJoin>> make(std::size_t threads) {
  return std::make_unique<Kind>(threads);
}

}  // namespace

const std::vector<ForkJoinKind>& fork_join_kinds() {
  static const std::vector<ForkJoinKind> kinds = {
      {"thread_pool", {}, make_our_pool},
      {"new threads", {}, make<NewThreads>},
      {"mutex pool", {}, make<MutexPool>},
      {"openmp", kNoOpenMp, make<OpenMp>},
  };
  return kinds;
}

}  // namespace kvingest::bench
