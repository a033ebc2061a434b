// strace.hpp -- watches, delays or fails the system calls of a program under test.
//
// Threads and errors: as in process.hpp. See strace_missing() in skip.hpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace kvingest::test {

/// Attached to a running process, all of its threads, until detached or destroyed.
class Strace {
 public:
  /// `what` are strace's arguments: {"-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO"}. Returns once
  /// attached.
  Strace(pid_t pid, const std::vector<std::string>& what);

  /// Detaches and returns the calls seen, one a line.
  std::vector<std::string> detach();

 private:
  TempDir temp_;
  Process process_;
};

/// What a program that is traced to its very end needs in its environment: LeakSanitizer gives up under ptrace.
[[nodiscard]] std::map<std::string, std::string> traced_environment();

/// The start of a command line that runs the rest of it under strace, in the place of the command itself: pid and exit
/// code are the program's.
[[nodiscard]] std::vector<std::string> strace_command(const std::string& output, std::vector<std::string> what);

}  // namespace kvingest::test
