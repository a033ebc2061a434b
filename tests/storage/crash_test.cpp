// kill -9 at random moments, on every persistent engine, at every level that promises to survive it.
//
// World: a child process writes campaign batches and reports through a pipe which it is about to write and which were
// acknowledged; the pipe is the log outside the store. We kill it, open the store and find exactly the first N batches:
// none torn, none missing, N at least the last acknowledged one and at most the last sent one. The next child goes on
// in the same directory, so that recovery's own work is killed and recovered, too.
#include <fmt/format.h>

#include <time.h>

#include <chrono>
#include <random>

#include "tests/storage/campaign.hpp"
#include "tests/storage/scenario.hpp"
#include "tests/support/process.hpp"

namespace kvingest::test {
namespace {

constexpr std::size_t kRounds = 6;
constexpr double kInterruptedShareMin = 0.8;

/// When a child is killed: after so many acknowledgements and a little later, out of step with its reports.
struct Moment {
  std::uint64_t acknowledgements;
  std::chrono::microseconds later;
};

Moment random_moment(std::mt19937_64& random) {
  return {1 + random() % 40, std::chrono::microseconds(random() % 3'000)};
}

void let_pass(std::chrono::microseconds time) {
  const timespec wanted{0, std::chrono::nanoseconds(time).count()};
  ::nanosleep(&wanted, nullptr);  // The moment of a kill is a time; there is no event to wait for.
}

/// Starts a child that writes, and kills it at that moment.
Reports write_and_kill(const Subject& subject, Durability level, std::uint64_t seed, const Moment& moment) {
  Process child({program("test_store_tool"), "campaign", subject.spec_text(), subject.dir().native(),
                 std::string(to_string(level)), std::to_string(seed)},
                {.pipe_output = true});
  Reports reports;
  for (std::uint64_t seen = 0; seen < moment.acknowledgements;) {
    const auto line = child.output().read_line();
    if (!line) throw std::runtime_error("the child ended by itself: " + child.err_text());
    reports.add(*line);
    seen += line->front() == 'a' ? 1 : 0;
  }
  let_pass(moment.later);
  child.kill();
  while (const auto line = child.output().read_line()) reports.add(*line);
  return reports;
}

void check_after_kill(const Subject& subject, const Reports& reports, CampaignModel& model) {
  std::string notices;
  auto store = subject.open({.notice = [&](std::string_view text) { notices += std::string(text) + "\n"; }});
  const std::uint64_t found = store->last_batch();
  CAPTURE(found, reports.acknowledged, reports.sent, notices);
  REQUIRE(found >= reports.acknowledged);
  REQUIRE(found <= reports.sent);
  check_equal(*store, model.after(found));
  const auto verified = store->verify();
  REQUIRE_OK(verified);
  close(*store);
}

void kill_campaign(Subject& subject, Durability level) {
  subject.use_small_files();
  const std::uint64_t seed = test_seed();
  const std::size_t rounds = torture_rounds(kRounds);
  CAPTURE(seed, to_string(level), rounds);
  std::mt19937_64 random(seed);
  CampaignModel model({seed});
  std::size_t interrupted = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const Reports reports = write_and_kill(subject, level, seed, random_moment(random));
    if (reports.sent > reports.acknowledged) ++interrupted;
    check_after_kill(subject, reports, model);
  }
  print_rounds(rounds, fmt::format("kills of {} at {}, {} of them in the middle of a batch, seed {}",
                                   subject.engine().name, to_string(level), interrupted, seed));
  CHECK(static_cast<double>(interrupted) >= kInterruptedShareMin * static_cast<double>(rounds));
}

ENGINE_SCENARIO(persistent, "kill -9 while writing at disk leaves an exact prefix with all that was acknowledged") {
  kill_campaign(subject, Durability::disk);
}

ENGINE_SCENARIO(persistent, "kill -9 while writing at kernel leaves an exact prefix with all that was acknowledged") {
  kill_campaign(subject, Durability::kernel);
}

ENGINE_SCENARIO(persistent, "kill -9 while opening after a crash loses nothing that was there") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const Reports reports = write_and_kill(subject, Durability::kernel, seed, random_moment(random));
  const std::vector<std::string> open_only{program("test_store_tool"), "hold", subject.spec_text(),
                                           subject.dir().native()};
  for (std::size_t round = 0; round < torture_rounds(kRounds); ++round) {
    Process child(open_only, {.pipe_input = true, .pipe_output = true});
    let_pass(std::chrono::microseconds(random() % 30'000));
    child.kill();
  }
  CampaignModel model({seed});
  check_after_kill(subject, reports, model);
  print_rounds(torture_rounds(kRounds),
               fmt::format("kills of {} while it opens, seed {}", subject.engine().name, seed));
}

}  // namespace
}  // namespace kvingest::test
