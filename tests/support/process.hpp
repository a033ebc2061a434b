// process.hpp -- a program under test in a child process.
//
// Its output goes to files, so that it can never block on us, or through a pipe where a test reads along. The child is
// killed with its Process, and by the kernel when the thread that started it ends.
//
// Threads: one at a time.
// Errors:  as in stream.hpp: what a test cannot go on from is thrown.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/stream.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {

/// How a process ended: by exit (code) or by a signal.
struct Exit {
  int code = -1;
  int signal = 0;
  friend bool operator==(const Exit&, const Exit&) = default;
};

class Process {
 public:
  struct Options {
    std::map<std::string, std::string> env = {};  ///< Added to ours.
    std::filesystem::path cwd = {};               ///< Empty: ours.
    bool pipe_input = false;                      ///< input() writes to its stdin; else it reads /dev/null.
    bool pipe_output = false;                     ///< output() reads its stdout; else out_text() has it.
    rlim_t file_bytes_max = 0;                    ///< RLIMIT_FSIZE; 0: ours.
    rlim_t files_max = 0;                         ///< RLIMIT_NOFILE; 0: ours.
    uid_t user = 0;                               ///< Run as this user and group; 0: as we are.
  };

  /// Starts argv[0], looked up on PATH if it has no slash. Throws when it cannot be started.
  explicit Process(std::vector<std::string> argv, const Options& options);
  explicit Process(std::vector<std::string> argv) : Process(std::move(argv), Options{}) {}
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] Stream& input() noexcept { return input_; }
  [[nodiscard]] Stream& output() noexcept { return output_; }
  /// All of its stdout (unless piped) and stderr so far.
  [[nodiscard]] std::string out_text() const { return file_text(files_ / "out"); }
  [[nodiscard]] std::string err_text() const { return file_text(files_ / "err"); }

  /// How it ended, or nullopt if it has not within `bound`.
  std::optional<Exit> wait(std::chrono::milliseconds bound);
  /// How it ended; throws with its stderr if it has not within `bound`.
  Exit finish(std::chrono::milliseconds bound = kWaitMax);
  [[nodiscard]] bool running() { return !wait(std::chrono::milliseconds{0}); }

  void signal(int number);
  /// SIGKILL, and waits for its end.
  void kill();

 private:
  void start(const std::vector<std::string>& argv, const Options& options);

  TempDir files_;
  Stream input_;
  Stream output_;
  std::string name_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  std::optional<Exit> ended_;
};

/// What a program that ended left.
struct Finished {
  Exit exit;
  std::string out;
  std::string err;
};

/// Runs a program to its end. Throws if that takes longer than `bound`.
Finished run(std::vector<std::string> argv, const Process::Options& options = {},
             std::chrono::milliseconds bound = kWaitMax);

/// Lets others run for about a millisecond.
void wait_a_moment();

/// Waits until `condition` holds; false when it does not within `bound`. For states that raise no event.
template <class Condition>
bool eventually(Condition&& condition, std::chrono::milliseconds bound = kWaitMax) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    wait_a_moment();
  }
  return true;
}
}  // namespace kvingest::test
