// pool_rivals.hpp -- ways of running a body on several threads, from the plainest to OpenMP, behind one interface.
//
// Threads: each starts those it is made of; fork_join() is called by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "kvingest/function_ref.hpp"
#include "kvingest/result.hpp"

namespace kvingest::bench {

class ForkJoin {
 public:
  virtual ~ForkJoin() = default;
  /// Calls `body` once for each of the threads that it was made with, on as many as come, and waits for all.
  virtual void fork_join(FunctionRef<void()> body) = 0;
};

struct ForkJoinKind {
  std::string_view name;
  std::string_view missing;  ///< Why this build does not have it; empty: it has.
  /// Fails with: what starting threads fails with.
  Result<std::unique_ptr<ForkJoin>> (*make)(std::size_t threads);
};

/// ThreadPool, threads that are created and joined, a pool behind a mutex, OpenMP.
[[nodiscard]] const std::vector<ForkJoinKind>& fork_join_kinds();

}  // namespace kvingest::bench
