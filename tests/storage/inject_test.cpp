// System calls fail under the real libraries, on every persistent engine: strace fails the N-th of one kind.
//
// World: a store with some history; a child process opens it, writes small campaign batches at disk with reports which
// it is about to write and which were acknowledged, and closes it. Whatever fails, the child ends by itself, and what
// was acknowledged is there when the store is opened again.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/storage/campaign.hpp"
#include "tests/storage/scenario.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/strace.hpp"

namespace kvingest::test {
namespace {

constexpr std::uint64_t kHistory = 6;  // Batches before the faults.
constexpr std::uint64_t kBatches = 12;
constexpr std::size_t kTriesEach = 2;

struct Fault {
  const char* call;
  const char* error;
};
constexpr Fault kFaults[] = {
    {"fdatasync", "EIO"},    {"fsync", "EIO"},     {"msync", "EIO"},   {"pwrite64", "EIO"},
    {"pwrite64", "ENOSPC"},  {"pwritev", "EIO"},   {"write", "EIO"},   {"write", "ENOSPC"},
    {"fallocate", "ENOSPC"}, {"ftruncate", "EIO"}, {"mmap", "ENOMEM"},
};
constexpr const char* kTraced = "trace=fdatasync,fsync,msync,pwrite64,pwritev,write,fallocate,ftruncate,mmap";

struct Outcome {
  Exit exit;
  std::string err;
  Reports reports;
  std::vector<std::string> calls;
};

std::vector<std::string> files_of(const std::filesystem::path& dir) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file()) files.push_back(entry.path().native());
  }
  return files;
}

/// The child's work under strace with these arguments.
Outcome work(const Subject& subject, std::uint64_t seed, const std::vector<std::string>& strace) {
  Process child({program("test_store_tool"), "bounded", subject.spec_text(), subject.dir().native(), "disk",
                 std::to_string(seed), std::to_string(kHistory + kBatches)},
                {.env = traced_environment(), .pipe_input = true, .pipe_output = true});
  if (child.output().read_line() != "ready") throw std::runtime_error("the child did not start: " + child.err_text());
  Strace tracer(child.pid(), strace);
  child.input().send_all("go\n");
  Outcome outcome{.reports = {.acknowledged = kHistory}};
  while (const auto line = child.output().read_line()) outcome.reports.add(*line);
  outcome.exit = child.finish();
  outcome.err = child.err_text();
  outcome.calls = tracer.detach();
  return outcome;
}

/// How often the busiest thread made each call: strace counts for each thread by itself.
std::map<std::string, std::uint64_t> counts_of(const std::vector<std::string>& calls) {
  std::map<std::string, std::map<std::string, std::uint64_t>> by_thread;
  for (const std::string& line : calls) {
    const std::size_t space = line.find_first_not_of(' ', line.find(' '));
    const std::size_t bracket = line.find('(');
    if (space == std::string::npos || bracket == std::string::npos || bracket < space) continue;
    ++by_thread[line.substr(0, line.find(' '))][line.substr(space, bracket - space)];
  }
  std::map<std::string, std::uint64_t> most;
  for (const auto& [thread, counts] : by_thread) {
    for (const auto& [call, count] : counts) most[call] = std::max(most[call], count);
  }
  return most;
}

/// The store again as it was before the faults.
class History {
 public:
  explicit History(const Subject& subject, std::uint64_t seed)
      : dir_(subject.dir()), copy_(subject.temp() / "history") {
    auto store = subject.open();
    for (std::uint64_t number = 1; number <= kHistory; ++number)
      write(*store, to_batch(campaign_batch({seed, true}, number), campaign_first(number)), Durability::disk);
    close(*store);
    std::filesystem::copy(dir_, copy_, std::filesystem::copy_options::recursive);
  }
  void renew() const {
    std::filesystem::remove_all(dir_);
    std::filesystem::copy(copy_, dir_, std::filesystem::copy_options::recursive);
  }

 private:
  std::filesystem::path dir_;
  std::filesystem::path copy_;
};

void check_outcome(const Subject& subject, const Outcome& outcome, std::uint64_t seed) {
  CAPTURE(outcome.err, outcome.reports.acknowledged, outcome.reports.sent, outcome.exit.code, outcome.exit.signal);
  REQUIRE(outcome.exit.signal == 0);
  REQUIRE((outcome.exit.code == 0 || outcome.exit.code == 1));
  auto store = subject.open();
  const std::uint64_t found = store->last_batch();
  CAPTURE(found);
  REQUIRE(found >= outcome.reports.acknowledged);
  REQUIRE(found <= std::max(outcome.reports.sent, kHistory));
  CampaignModel model({seed, true});
  check_equal(*store, model.after(found));
  REQUIRE_OK(store->verify());
  close(*store);
}

ENGINE_SCENARIO(persistent, "a system call that fails once, whichever it is, costs nothing that was acknowledged") {
  if (const auto reason = strace_missing()) KV_SKIP(*reason);
  subject.use_small_files();
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const History history(subject, seed);
  const Outcome sound = work(subject, seed, {"-e", kTraced});
  CAPTURE(sound.err);
  REQUIRE(sound.exit == Exit{0});
  REQUIRE(sound.reports.acknowledged == kHistory + kBatches);
  const auto counts = counts_of(sound.calls);
  std::size_t rounds = 0;
  std::size_t ended = 0;
  for (const Fault& fault : kFaults) {
    const auto made = counts.find(fault.call);
    if (made == counts.end()) continue;
    // In the long form each of them, one after the other; in the short one some.
    const std::size_t tries = std::min<std::size_t>(torture_rounds(kTriesEach), made->second);
    for (std::size_t i = 0; i < tries; ++i) {
      const std::uint64_t n = tries == made->second ? i + 1 : 1 + random() % made->second;
      CAPTURE(fault.call, fault.error, n);
      history.renew();
      std::vector<std::string> strace = {"-e", fmt::format("trace={}", fault.call), "-e",
                                         fmt::format("inject={}:error={}:when={}", fault.call, fault.error, n)};
      if (std::string_view(fault.call) == "mmap") {  // Of the store's files: not of those who allocate memory.
        for (const std::string& file : files_of(subject.dir())) strace.insert(strace.end(), {"-P", file});
      }
      const Outcome outcome = work(subject, seed, strace);
      check_outcome(subject, outcome, seed);
      ended += outcome.exit.code == 0 ? 0 : 1;
      ++rounds;
    }
  }
  print_rounds(rounds, fmt::format("injected faults under {}, {} of them ended the writer, seed {}",
                                   subject.engine().name, ended, seed));
  CHECK(rounds > 3);
}

TEST_CASE("rocksdb: a hole in its log, which it takes for the end, is found when the store is opened") {
  const auto all = engines();
  const auto row = std::find_if(all.begin(), all.end(), [](const Engine* one) { return one->name == "rocksdb"; });
  REQUIRE(row != all.end());
  if (!(*row)->missing.empty()) return;  // Said by --list-stores, and tested there.
  const Subject subject(**row);
  const History history(subject, test_seed());
  std::filesystem::path log;
  for (const std::string& file : files_of(subject.dir())) {
    if (file.ends_with(".log")) log = file;
  }
  std::string text = file_text(log);
  REQUIRE(text.size() > 300);
  text.replace(text.size() / 3, 64, 64, '\0');
  write_text(log, text);
  const auto opened = subject.try_open();
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::corrupt);
  CHECK(opened.error().text.find("acknowledged batches are missing") != std::string::npos);
}

}  // namespace
}  // namespace kvingest::test
