// What a mapping and the page cache do: touching pages for the first and the second time, with each kind of advice;
// reading through a mapping, pread and O_DIRECT where the file is smaller and larger than the memory that may hold it;
// how dirty pages come and go; and whether another process sees what was stored.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/interrupt.hpp"
#include "bench/child.hpp"
#include "bench/clock.hpp"
#include "bench/page_file.hpp"
#include "bench/seed.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "kvingest/codec/fixed.hpp"

namespace kvingest::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUsualPages = 16'384;  // 64 MiB
constexpr std::uint64_t kDirtyTimes = 4;       // As much for the curve of dirty pages.
constexpr std::chrono::milliseconds kLookAtDirty{5};
constexpr double kTimesOfLimit[] = {0.25, 0.5, 1, 2, 4};
constexpr std::uint64_t kRandomReads = 4'000;
constexpr std::uint64_t kLimitBytesMin = std::uint64_t{32} << 20;  // Less, and a process does not start.
constexpr std::chrono::seconds kPageChildMax{120};
constexpr std::uint64_t kRounds = 2'000;

struct TouchWay {
  const char* name;
  bool is_cold;
  int flags;
  int advice;  ///< -1: none.
  bool again;  ///< What is timed is the second time.
};

constexpr TouchWay kTouchWays[] = {
    {"first touch", false, 0, -1, false},
    {"second touch", false, 0, -1, true},
    {"MAP_POPULATE", false, MAP_POPULATE, -1, false},
    {"MADV_RANDOM", false, 0, MADV_RANDOM, false},
    {"MADV_SEQUENTIAL", false, 0, MADV_SEQUENTIAL, false},
    {"MADV_WILLNEED", false, 0, MADV_WILLNEED, false},
    {"MADV_HUGEPAGE", false, 0, MADV_HUGEPAGE, false},
    {"cold: first touch", true, 0, -1, false},
    {"cold: MAP_POPULATE", true, MAP_POPULATE, -1, false},
    {"cold: MADV_RANDOM", true, 0, MADV_RANDOM, false},
    {"cold: MADV_SEQUENTIAL", true, 0, MADV_SEQUENTIAL, false},
    {"cold: MADV_WILLNEED", true, 0, MADV_WILLNEED, false},
};

Subject pages_subject(const std::string& workload, std::uint64_t pages, const std::string& variant) {
  Subject subject{.suite = "seed", .workload = workload};
  subject.params = {{"pages", pages}};
  subject.variant = variant;
  return subject;
}

/// One way of touching each page of `file`, in order: nanoseconds a page, and how much was in memory before.
Result<std::pair<double, double>> touch(const File& file, std::uint64_t pages, const TouchWay& way) {
  const std::uint64_t bytes = pages * kPageBytes;
  if (way.is_cold) drop_from_cache(file);
  double residency = 0;
  {
    auto look = Mapping::map(file, bytes, false);
    KV_TRY(look);
    if (!way.is_cold) static_cast<void>(look->touch_all());
    residency = look->residency();
  }
  const std::uint64_t expected = pages * (pages - 1) / 2;
  auto start = Clock::now();
  auto mapping = Mapping::map(file, bytes, false, way.flags);
  KV_TRY(mapping);
  if (way.advice >= 0) ::madvise(mapping->data(), bytes, way.advice);  // Advice that is not taken costs nothing.
  if (way.again) {
    static_cast<void>(mapping->touch_all());
    start = Clock::now();
  }
  const std::uint64_t sum = mapping->touch_all();
  const double ns = ns_since(start);
  if (sum != expected) return fail(Code::corrupt, "the pages of {} hold something else", file.path().native());
  return std::pair{ns / static_cast<double>(pages), residency};
}

Result<void> run_touches(Bench& bench, std::uint64_t pages) {
  auto file = make_page_file(bench.work_dir / "pages", pages);
  KV_TRY(file);
  std::array<std::vector<double>, std::size(kTouchWays)> ns;
  std::array<std::vector<double>, std::size(kTouchWays)> residency;
  for (std::uint64_t repeat = 0; repeat < bench.settings.repeat; ++repeat) {
    if (repeat > 0 && bench.deadline_passed()) break;
    for (std::size_t i = 0; i < std::size(kTouchWays); ++i) {
      if (interrupted()) return fail(Code::io_error, "interrupted");
      auto took = touch(*file, pages, kTouchWays[i]);
      KV_TRY(took);
      ns[i].push_back(took->first);
      residency[i].push_back(took->second * 100);
    }
  }
  Table table(fmt::format("seed: touching {} pages of a mapped file, median of {}", pages, ns[0].size()),
              {"way", "in memory %", "ns/page", "+-%", "GB/s"}, 1);
  for (std::size_t i = 0; i < std::size(kTouchWays); ++i) {
    const Subject subject = pages_subject("touching pages", pages, kTouchWays[i].name);
    bench.results.add(subject, "ns_per_page", "ns", ns[i]);
    bench.results.add(subject, "resident_percent", "1", residency[i]);
    const double each = median(ns[i]);
    table.add({kTouchWays[i].name, fmt::format("{:.0f}", median(residency[i])), fmt::format("{:.1f}", each),
               fmt::format("{:.0f}", spread(ns[i]) * 50), fmt::format("{:.2f}", kPageBytes / each)});
  }
  table.note("With mapping the file; one word of each page, in order. cold: after POSIX_FADV_DONTNEED.");
  table.note("in memory: what the kernel says of the file right before (mincore).");
  bench.tables += table.text() + "\n";
  return {};
}

// ---- Around a limit of memory -----------------------------------------------------------------------------------

/// A process of its own, in the group where there is one, since that bounds what is cached for it.
Result<PageReads> read_in_child(const Bench& bench, const fs::path& file, const char* way, std::uint64_t reads,
                                const MemoryLimit& limit) {
  auto child = Child::start({(bench.programs / "kvbench").string(), "read-pages", "--file", file.string(), "--way", way,
                             "--messages", std::to_string(reads), "--group", limit.dir().string()},
                            bench.work_dir, "read-pages");
  KV_TRY(child);
  auto ended = child->wait(kPageChildMax);
  KV_TRY(ended);
  if (!*ended) return fail(Code::io_error, "reading pages by {} did not end in time", way);
  KV_TRY(child->usage());
  PageReads read;
  const std::string text = child->output();
  char* at = nullptr;
  read.ns_per_page = std::strtod(text.c_str(), &at);
  read.faults = std::strtoull(at, nullptr, 10);
  if (read.ns_per_page <= 0) return fail(Code::io_error, "read-pages printed '{}'", text);
  return read;
}

struct LimitRow {
  const char* way;
  std::vector<double> ns = {};
  std::vector<double> faults = {};
};

/// All ways of reading one file, in turns.
Result<std::array<LimitRow, 3>> read_one_size(Bench& bench, const MemoryLimit& limit, std::uint64_t file_pages,
                                              std::uint64_t reads) {
  std::array<LimitRow, 3> rows = {LimitRow{"mmap"}, LimitRow{"pread"}, LimitRow{"direct"}};
  const fs::path path = bench.work_dir / "limited";
  auto file = make_page_file(path, file_pages);
  KV_TRY(file);
  for (std::uint64_t repeat = 0; repeat < bench.settings.repeat; ++repeat) {
    if (repeat > 0 && bench.deadline_passed()) break;
    for (LimitRow& row : rows) {
      if (interrupted()) return fail(Code::io_error, "interrupted");
      drop_from_cache(*file);  // Or it would be there already, at our own cost.
      auto read = read_in_child(bench, path, row.way, reads, limit);
      KV_TRY(read);
      row.ns.push_back(read->ns_per_page);
      row.faults.push_back(static_cast<double>(read->faults) * 1'000 / static_cast<double>(reads));
    }
  }
  std::error_code ignored;
  fs::remove(path, ignored);
  return rows;
}

Result<void> run_around_limit(Bench& bench, std::uint64_t pages) {
  const std::uint64_t limit_bytes = std::max(pages * kPageBytes, kLimitBytesMin);
  auto limit = MemoryLimit::make(limit_bytes);
  if (!limit) {
    bench.results.add_missing(pages_subject("reading around a limit", pages, "mmap"), "ns_per_page", "ns",
                              limit.error().text);
    bench.tables += "seed: reading around a limit of memory: left out: " + limit.error().text + "\n\n";
    return {};
  }
  Table table(fmt::format("seed: random reads of 4 KiB with {} MiB of memory, median of {}", limit_bytes >> 20,
                          bench.settings.repeat),
              {"way", "file MiB", "of the memory", "us/page", "+-%", "faults/1000"}, 1);
  const std::uint64_t reads = std::min(kRandomReads, pages);
  std::array<Series, 3> lines;
  for (const double times : kTimesOfLimit) {
    const auto file_pages = static_cast<std::uint64_t>(static_cast<double>(limit_bytes) * times / kPageBytes);
    auto rows = read_one_size(bench, *limit, file_pages, reads);
    KV_TRY(rows);
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const LimitRow& row = (*rows)[i];
      Subject subject = pages_subject("reading around a limit", pages, row.way);
      lines[i].subject = subject;
      lines[i].line = row.way;
      lines[i].points.emplace_back(times, median(row.ns));
      subject.params["percent_of_limit"] = static_cast<std::uint64_t>(times * 100);
      bench.results.add(subject, "ns_per_page", "ns", row.ns);
      bench.results.add(subject, "major_faults", "1", row.faults);
      table.add({row.way, std::to_string(file_pages * kPageBytes >> 20), fmt::format("{:.2f}", times),
                 fmt::format("{:.2f}", median(row.ns) / 1e3), fmt::format("{:.0f}", spread(row.ns) * 50),
                 fmt::format("{:.0f}", median(row.faults))});
    }
  }
  for (Series& line : lines) {
    line.picture = "seed: random reads by size of the file in times of the memory";
    line.x = "size of the file, in times of the memory that may hold it";
    line.y = "ns a page";
    line.log_x = line.log_y = true;
    bench.results.series.push_back(std::move(line));
  }
  table.note("A process in a group whose memory is bounded, page cache included; the file is not cached at");
  table.note("first. As many reads as are timed warm up. faults: of the mapping, for which the disk was read.");
  bench.tables += table.text() + "\n";
  return {};
}

// ---- Dirty pages ------------------------------------------------------------------------------------------------

/// A field of /proc/meminfo, in MiB.
double meminfo_mib(std::string_view name) {
  std::ifstream in("/proc/meminfo");
  std::string field;
  double kib = 0;
  for (std::string unit; in >> field >> kib; std::getline(in, unit)) {
    if (field == name) return kib / 1024;
  }
  return 0;
}

/// Looks at the kernel's dirty pages every few milliseconds until it is destroyed.
class DirtySampler {
 public:
  DirtySampler(Series& dirty, Series& writeback, Clock::time_point start)
      : thread_([this, &dirty, &writeback, start] {
          std::unique_lock lock(mutex_);
          do {
            const double seconds = seconds_since(start);
            dirty.points.emplace_back(seconds, meminfo_mib("Dirty:"));
            writeback.points.emplace_back(seconds, meminfo_mib("Writeback:"));
          } while (!changed_.wait_for(lock, kLookAtDirty, [this] { return stopped_; }));
        }) {}
  DirtySampler(const DirtySampler&) = delete;
  DirtySampler& operator=(const DirtySampler&) = delete;
  ~DirtySampler() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

Result<void> run_dirty_curve(Bench& bench, std::uint64_t pages) {
  const std::uint64_t bytes = pages * kPageBytes;
  auto file = File::open(Posix::real(), bench.work_dir / "dirty", O_RDWR | O_CREAT | O_TRUNC);
  KV_TRY(file);
  KV_TRY(file->allocate(0, bytes));
  auto mapping = Mapping::map(*file, bytes, true);
  KV_TRY(mapping);
  Series dirty{.subject = pages_subject("dirty pages", pages, "dirty")};
  dirty.picture = fmt::format("seed: dirty pages while {} MiB are stored through a mapping and synced", bytes >> 20);
  dirty.x = "seconds";
  dirty.y = "MiB";
  Series writeback = dirty;
  dirty.line = "Dirty";
  writeback.line = "Writeback";
  std::array<double, 3> ms{};
  int failed = 0;
  {
    const auto start = Clock::now();
    const DirtySampler sampler(dirty, writeback, start);
    for (std::uint64_t page = 0; page < pages; ++page) codec::put_fixed(mapping->data() + page * kPageBytes, page);
    ms[0] = ns_since(start) / 1e6;
    const auto before_async = Clock::now();
    failed |= ::msync(mapping->data(), bytes, MS_ASYNC);
    ms[1] = ns_since(before_async) / 1e6;
    const auto before_sync = Clock::now();
    failed |= ::msync(mapping->data(), bytes, MS_SYNC);
    ms[2] = ns_since(before_sync) / 1e6;
  }
  if (failed != 0) return fail(Code::io_error, "msync {}", file->path().native());
  Table table(fmt::format("seed: {} MiB stored through a mapping", bytes >> 20), {"step", "ms", "MB/s"}, 1);
  constexpr const char* kSteps[] = {"a word to each page", "msync(MS_ASYNC)", "msync(MS_SYNC)"};
  for (std::size_t i = 0; i < ms.size(); ++i) {
    table.add({kSteps[i], fmt::format("{:.2f}", ms[i]),
               i == 1 ? "-" : fmt::format("{:.0f}", static_cast<double>(bytes) / 1e3 / ms[i])});
    bench.results.add(pages_subject("dirty pages", pages, kSteps[i]), "took", "s", {ms[i] / 1e3});
  }
  table.note("Once. The picture in the report shows what the kernel says is dirty, and on its way, meanwhile.");
  bench.tables += table.text() + "\n";
  bench.results.series.push_back(std::move(dirty));
  bench.results.series.push_back(std::move(writeback));
  return {};
}

// ---- Another process --------------------------------------------------------------------------------------------

/// In the other process: for each byte that comes, what pread finds in the file's first word.
[[noreturn]] void answer_with_words(int socket, int file) {
  char byte = 0;
  std::array<char, 8> word;
  while (::read(socket, &byte, 1) == 1) {
    if (::pread(file, word.data(), word.size(), 0) != static_cast<ssize_t>(word.size())) break;
    if (::write(socket, word.data(), word.size()) != static_cast<ssize_t>(word.size())) break;
  }
  ::_exit(0);
}

Result<void> run_coherence(Bench& bench) {
  auto file = make_page_file(bench.work_dir / "shared", 1);
  KV_TRY(file);
  auto mapping = Mapping::map(*file, kPageBytes, true);
  KV_TRY(mapping);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return fail(errno, "make a socket pair");
  const pid_t other = ::fork();
  if (other < 0) return fail(errno, "start a process");
  if (other == 0) {
    ::close(ends[0]);
    answer_with_words(ends[1], file->fd());
  }
  ::close(ends[1]);
  std::uint64_t stale = 0;
  std::uint64_t answered = 0;
  const auto start = Clock::now();
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    codec::put_fixed(mapping->data(), round);
    std::array<char, 8> word{};
    const char byte = 0;
    if (::write(ends[0], &byte, 1) != 1) break;
    if (::read(ends[0], word.data(), word.size()) != static_cast<ssize_t>(word.size())) break;
    ++answered;
    if (codec::get_fixed<std::uint64_t>(word.data()) != round) ++stale;
  }
  const double ns = ns_since(start) / static_cast<double>(kRounds);
  ::close(ends[0]);
  ::waitpid(other, nullptr, 0);
  if (answered != kRounds) return fail(Code::io_error, "the other process answered {} of {} times", answered, kRounds);
  const Subject subject = pages_subject("another process reads", 1, "store, then pread");
  bench.results.add(subject, "round_trip", "ns", {ns});
  bench.results.add(subject, "stale_reads", "1", {static_cast<double>(stale)});
  bench.tables += fmt::format(
      "seed: {} words stored through a mapping, each then read by another process\n"
      "{} of them were stale; {:.1f} us a round\n\n",
      kRounds, stale, ns / 1e3);
  return {};
}

}  // namespace

Result<void> run_seed_pages(Bench& bench) {
  const std::uint64_t pages = std::max<std::uint64_t>(bench.sizes({kUsualPages}).front(), 1);
  KV_TRY(run_touches(bench, pages));
  KV_TRY(run_around_limit(bench, pages));
  KV_TRY(run_dirty_curve(bench, kDirtyTimes * pages));
  return run_coherence(bench);
}

}  // namespace kvingest::bench
