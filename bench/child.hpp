// child.hpp -- a program in a child process, with what it cost.
//
// Its stdout and stderr go to files, so that it can never block on us. It is killed with its Child, and by the kernel
// when kvbench dies.
//
// Threads: one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest::bench {

/// What a process used from its start to its end, all threads together.
struct Usage {
  double user_seconds = 0;
  double system_seconds = 0;
  std::uint64_t rss_max_bytes = 0;
  std::uint64_t voluntary_switches = 0;    ///< It waited for something.
  std::uint64_t involuntary_switches = 0;  ///< It was taken off its CPU.
};

class Child {
 public:
  /// Starts argv[0]; its output goes to `NAME.out` and `NAME.err` in `dir`. Fails with: io_error.
  static Result<Child> start(const std::vector<std::string>& argv, const std::filesystem::path& dir,
                             const std::string& name);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) = delete;
  ~Child();

  /// Waits for its end, at most for `bound`; true when it has ended.
  Result<bool> wait(std::chrono::milliseconds bound);
  /// Waits until the file is there. Fails with: io_error (the child ended before, with what it said; or it took long).
  Result<void> wait_for_file(const std::filesystem::path& path, std::chrono::milliseconds bound);
  void signal(int number) const;

  /// After its end: what it used. Fails with: io_error, when it did not exit with 0; the text has what it said.
  [[nodiscard]] Result<Usage> usage() const;
  [[nodiscard]] std::string output() const;

  /// The CPU time of its threads so far.
  [[nodiscard]] double cpu_seconds() const;
  /// Its anonymous memory at this moment.
  [[nodiscard]] std::uint64_t rss_anon_bytes() const;

 private:
  Child(pid_t pid, int pidfd, std::filesystem::path dir, std::string name);

  pid_t pid_;
  int pidfd_;
  std::filesystem::path dir_;
  std::string name_;
  std::optional<int> status_;  ///< As wait4() gives it, once it has ended.
  Usage usage_;
};

}  // namespace kvingest::bench
