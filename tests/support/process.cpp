#include "tests/support/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace kvingest::test {
namespace {

/// A C array of strings that ends with a null pointer, pointing into `strings`.
std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> found;
  for (std::string& each : strings) found.push_back(each.data());
  found.push_back(nullptr);
  return found;
}

std::vector<std::string> environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry = *each;
    if (!added.contains(std::string(entry.substr(0, entry.find('='))))) all.emplace_back(entry);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

int open_for_child(const std::filesystem::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) give_up(fmt::format("open {}", path.native()));
  return fd;
}

void limit(__rlimit_resource_t what, rlim_t most) {
  const rlimit limits{most, most};
  if (most != 0) ::setrlimit(what, &limits);
}

// A signal that comes before exec must end the child as it would end the program, not run Catch2's handler in it.
void forget_our_signal_handlers() {
  struct sigaction fallback {};
  fallback.sa_handler = SIG_DFL;
  for (int number = 1; number < SIGRTMIN; ++number) ::sigaction(number, &fallback, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// What the child does between fork and exec; async-signal-safe calls only.
struct ChildSetup {
  pid_t parent;
  int in, out, err;
  const char* cwd;
  const Process::Options& options;

  bool apply() const {
    forget_our_signal_handlers();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) return false;
    if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) return false;
    if (cwd != nullptr && ::chdir(cwd) != 0) return false;
    limit(RLIMIT_FSIZE, options.file_bytes_max);
    limit(RLIMIT_NOFILE, options.files_max);
    if (options.user == 0) return true;
    return ::setgroups(0, nullptr) == 0 && ::setgid(options.user) == 0 && ::setuid(options.user) == 0;
  }
};

}  // namespace

Process::Process(std::vector<std::string> argv, const Options& options) : name_(argv.at(0)) {
  start(argv, options);
}

void Process::start(const std::vector<std::string>& argv, const Options& options) {
  int in[2] = {-1, -1};
  int out[2] = {-1, -1};
  if (options.pipe_input ? ::pipe2(in, O_CLOEXEC) != 0 : (in[0] = open_for_child("/dev/null", O_RDONLY)) < 0)
    give_up("pipe");
  if (options.pipe_output ? ::pipe2(out, O_CLOEXEC) != 0
                          : (out[1] = open_for_child(files_ / "out", O_CREAT | O_WRONLY | O_APPEND)) < 0)
    give_up("pipe");
  const int err = open_for_child(files_ / "err", O_CREAT | O_WRONLY | O_APPEND);

  std::vector<std::string> words = argv;
  std::vector<std::string> env = environment(options.env);
  const std::vector<char*> word_pointers = pointers(words);
  const std::vector<char*> env_pointers = pointers(env);
  const ChildSetup setup{::getpid(), in[0], out[1], err, options.cwd.empty() ? nullptr : options.cwd.c_str(), options};
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_ = ::fork();
  if (pid_ == 0) {
    if (setup.apply()) ::execvpe(word_pointers[0], word_pointers.data(), env_pointers.data());
    static constexpr char kFailed[] = "cannot start the program\n";
    [[maybe_unused]] const ssize_t ignored = ::write(2, kFailed, sizeof kFailed - 1);
    ::_exit(127);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(in[0]);
  ::close(out[1]);
  ::close(err);
  if (options.pipe_input) input_ = Stream(in[1]);
  if (options.pipe_output) output_ = Stream(out[0]);
  if (pid_ < 0) give_up("fork");
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) give_up("pidfd_open");
}

Process::~Process() {
  try {
    if (pid_ > 0) kill();
  } catch (const std::exception& error) {
    // A test that must not leave it running has asked for its end itself; the others need not fail here.
    std::fprintf(stderr, "%s\n", error.what());
  }
  if (pidfd_ >= 0) ::close(pidfd_);
}

std::optional<Exit> Process::wait(std::chrono::milliseconds bound) {
  if (ended_) return ended_;
  const auto end = std::chrono::steady_clock::now() + bound;
  pollfd waiting{pidfd_, POLLIN, 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready == 0) return std::nullopt;
    if (ready > 0) break;
    if (errno != EINTR) give_up("poll");
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) give_up("waitpid");
  }
  ended_ = WIFEXITED(status) ? Exit{WEXITSTATUS(status), 0} : Exit{-1, WTERMSIG(status)};
  return ended_;
}

Exit Process::finish(std::chrono::milliseconds bound) {
  if (const auto exit = wait(bound)) return *exit;
  throw std::runtime_error(
      fmt::format("{} did not end within {} ms; its stderr:\n{}", name_, bound.count(), err_text()));
}

void Process::signal(int number) {
  if (!ended_ && ::kill(pid_, number) != 0) give_up(fmt::format("kill {}", pid_));
}

void Process::kill() {
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  finish();
}

Finished run(std::vector<std::string> argv, const Process::Options& options, std::chrono::milliseconds bound) {
  Process process(std::move(argv), options);
  const Exit exit = process.finish(bound);
  return {exit, process.out_text(), process.err_text()};
}

void wait_a_moment() {
  const timespec moment{0, 1'000'000};
  ::nanosleep(&moment, nullptr);
}

}  // namespace kvingest::test
