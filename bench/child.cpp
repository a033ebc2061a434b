#include "bench/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

namespace kvingest::bench {
namespace {

constexpr int kNotStarted = 127;  // As shells say it.

std::string file_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// In the child, between fork and exec: only calls that are safe there. `argv` was made before.
[[noreturn]] void become(char* const* argv, int out, int err, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotStarted);  // The parent died before the line above.
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0 || ::dup2(in, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0)
    ::_exit(kNotStarted);
  ::execv(argv[0], argv);
  ::_exit(kNotStarted);
}

int open_output(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

}  // namespace

Child::Child(pid_t pid, int pidfd, std::filesystem::path dir, std::string name)
    : pid_(pid), pidfd_(pidfd), dir_(std::move(dir)), name_(std::move(name)) {}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      dir_(std::move(other.dir_)),
      name_(std::move(other.name_)),
      status_(other.status_),
      usage_(other.usage_) {}

Child::~Child() {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (pidfd_ >= 0) ::close(pidfd_);
}

Result<Child> Child::start(const std::vector<std::string>& argv, const std::filesystem::path& dir,
                           const std::string& name) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int out = open_output(dir / (name + ".out"));
  const int err = open_output(dir / (name + ".err"));
  const pid_t parent = ::getpid();
  const pid_t pid = out >= 0 && err >= 0 ? ::fork() : -1;
  if (pid == 0) become(arguments.data(), out, err, parent);
  const int error = errno;
  if (out >= 0) ::close(out);
  if (err >= 0) ::close(err);
  if (pid < 0) return fail(error, "start {}", argv.front());
  const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  return Child(pid, pidfd, dir, name);
}

Result<bool> Child::wait(std::chrono::milliseconds bound) {
  if (status_) return true;
  pollfd ended{.fd = pidfd_, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&ended, 1, static_cast<int>(bound.count()));
  if (ready < 0 && errno != EINTR) return fail(errno, "wait for {}", name_);
  rusage used{};
  int status = 0;
  const pid_t done = ::wait4(pid_, &status, WNOHANG, &used);
  if (done < 0) return fail(errno, "wait for {}", name_);
  if (done == 0) return false;
  status_ = status;
  usage_ = {.user_seconds = seconds(used.ru_utime),
            .system_seconds = seconds(used.ru_stime),
            .rss_max_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024,
            .voluntary_switches = static_cast<std::uint64_t>(used.ru_nvcsw),
            .involuntary_switches = static_cast<std::uint64_t>(used.ru_nivcsw)};
  return true;
}

Result<void> Child::wait_for_file(const std::filesystem::path& path, std::chrono::milliseconds bound) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!std::filesystem::exists(path)) {
    auto ended = wait(std::chrono::milliseconds(2));
    KV_TRY(ended);
    if (*ended)
      return fail(Code::io_error, "{} ended before it was ready: {}", name_, file_text(dir_ / (name_ + ".err")));
    if (std::chrono::steady_clock::now() > end) return fail(Code::io_error, "{} was not ready in time", name_);
  }
  return {};
}

void Child::signal(int number) const {
  if (pid_ > 0 && !status_) ::kill(pid_, number);
}

Result<Usage> Child::usage() const {
  if (!status_) return fail(Code::io_error, "{} has not ended", name_);
  if (WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0) return usage_;
  const std::string how = WIFSIGNALED(*status_) ? fmt::format("was ended by signal {}", WTERMSIG(*status_))
                                                : fmt::format("exited with {}", WEXITSTATUS(*status_));
  return fail(Code::io_error, "{} {}: {}", name_, how, file_text(dir_ / (name_ + ".err")));
}

std::string Child::output() const {
  return file_text(dir_ / (name_ + ".out"));
}

double Child::cpu_seconds() const {
  // The scheduler's own count, in nanoseconds: the times in /proc/PID/stat come in steps of 10 ms.
  std::error_code ignored;
  double total_ns = 0;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid_) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, ignored)) {
    double on_cpu_ns = 0;
    std::ifstream(task.path() / "schedstat") >> on_cpu_ns;
    total_ns += on_cpu_ns;
  }
  return total_ns / 1e9;
}

std::uint64_t Child::rss_anon_bytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(std::strlen("RssAnon:"))) * 1024;
  }
  return 0;
}

}  // namespace kvingest::bench
