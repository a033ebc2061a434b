#include "demo_feed.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <vector>

namespace kvingest {

Result<void> DemoFeed::start(const std::string& address, std::uint64_t messages, std::optional<int> cpu,
                             std::function<void()> ended) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path program = self.parent_path() / "kvfeed";
  std::vector<std::string> words = {program.native(),         "--connect", address, "--messages",
                                    std::to_string(messages), "--quiet"};
  if (cpu) words.insert(words.end(), {"--cpu", std::to_string(*cpu)});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  // Its result is ours to print; what it complains about goes to our stderr.
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const int failed = ::posix_spawn(&child_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    child_ = -1;
    return fail(failed, "start {} for the demo", program.native());
  }
  waiter_ = std::thread([this, ended = std::move(ended)] {
    while (::waitpid(child_, &status_, 0) < 0 && errno == EINTR) {
    }
    ended();
  });
  return {};
}

DemoFeed::~DemoFeed() {
  if (!waiter_.joinable()) return;
  if (status_ == -1) ::kill(child_, SIGTERM);
  waiter_.join();
}

}  // namespace kvingest
