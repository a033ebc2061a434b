#include "bench/stores_run.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <vector>

#include "base/interrupt.hpp"
#include "base/posix.hpp"
#include "bench/clock.hpp"

namespace kvingest::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kWindowMax = 1'000'000;  // Of the CPU times that are compared.
constexpr std::uint64_t kGetsMax = 500'000;
constexpr std::size_t kGroupKeys = 1'000;
constexpr std::size_t kPage = 1'000;

double ns_of(Clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

double cpu_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Adds up what calls take.
class Stopwatch {
 public:
  template <class Call>
  auto operator()(Call&& call) {
    const auto start = Clock::now();
    auto result = call();
    ns_ += ns_of(Clock::now() - start);
    return result;
  }
  [[nodiscard]] double ns_each(std::uint64_t count) const { return ns_ / static_cast<double>(count); }

 private:
  double ns_ = 0;
};

/// CPU time of all threads, but for what making records takes.
class CpuWatch {
 public:
  template <class Call>
  void leave_out(Call&& call) {
    const double start = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    call();
    left_out_ns_ += cpu_ns(CLOCK_THREAD_CPUTIME_ID) - start;
  }
  [[nodiscard]] double ns() const { return cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns_ - left_out_ns_; }

 private:
  double start_ns_ = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  double left_out_ns_ = 0;
};

Result<void> check(const Look& look, std::uint64_t count, std::uint64_t sum, std::string_view doing) {
  if (look.wrong == 0 && look.count == count && look.sum == sum) return {};
  return fail(Code::corrupt, "{}: {} records of {}, {} of them wrong", doing, look.count, count, look.wrong);
}

Result<void> put_all(Target& target, const StoresWay& way, std::uint64_t records, Figures& figures) {
  const std::uint64_t window = std::clamp<std::uint64_t>(records / 2, 1, kWindowMax);
  RecordGroup group;
  Stopwatch put;
  CpuWatch cpu;
  std::optional<double> first_ns;
  std::uint64_t last_from = 0;
  double last_from_ns = 0;
  for (std::uint64_t done = 0; done < records;) {
    if (interrupted()) return fail(Code::io_error, "interrupted");
    if (last_from == 0 && done + window >= records) last_from = done, last_from_ns = cpu.ns();
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(way.group, records - done));
    cpu.leave_out([&] { group.fill(way.order, done, count); });
    KV_TRY(put([&] { return target.put(group); }));
    done += count;
    if (!first_ns && done >= window) figures["cpu_first"] = *(first_ns = cpu.ns()) / static_cast<double>(done);
  }
  figures["cpu_last"] = (cpu.ns() - last_from_ns) / static_cast<double>(records - last_from);
  figures["put"] = put.ns_each(records);
  return {};
}

Result<void> get_some(Target& target, const StoresWay& way, std::uint64_t records, Figures& figures) {
  const std::uint64_t turns = std::max<std::uint64_t>(std::min(records, kGetsMax) / kGroupKeys, 1);
  RecordGroup group;
  Stopwatch get;
  Stopwatch multi_get;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    if (interrupted()) return fail(Code::io_error, "interrupted");
    group.pick(way.order, records, turn, kGroupKeys);
    Look look;
    KV_TRY(get([&] { return target.get(group, look); }));
    KV_TRY(check(look, kGroupKeys, group.sum(), "get"));
    if (target.store() == nullptr) continue;
    group.pick(way.order, records, turns + turn, kGroupKeys);  // Others, which no cache has from the gets.
    Look many;
    KV_TRY(multi_get([&] {
      return target.store()->multi_get(group.keys(),
                                       [&](std::size_t index, std::string_view value) { many(index, value); });
    }));
    KV_TRY(check(many, kGroupKeys, group.sum(), "multi_get"));
  }
  figures["get"] = get.ns_each(turns * kGroupKeys);
  if (target.store() != nullptr) figures["multi_get"] = multi_get.ns_each(turns * kGroupKeys);
  return {};
}

/// All records in the order of their keys, page by page, as callers do.
Result<void> scan_all(const Store& store, std::uint64_t records, Figures& figures) {
  Stopwatch scan;
  Look look;
  std::string from;
  for (std::size_t passed = kPage; passed == kPage;) {
    const auto page = scan([&] {
      const Range range{.first = std::string_view(from), .last = {}, .limit = kPage};
      return store.scan(range, [&](std::string_view key, std::string_view value) {
        look(0, value);
        if (look.count % kPage == 0) from.assign(key).push_back('\0');
        return true;
      });
    });
    KV_TRY(page);
    passed = *page;
  }
  figures["scan"] = scan.ns_each(records);
  return check(look, records, records * (records - 1) / 2, "scan");
}

Result<void> compare_all(Target& target, const StoresWay& way, std::uint64_t records) {
  RecordGroup group;
  for (std::uint64_t done = 0; done < records; done += group.records().size()) {
    if (interrupted()) return fail(Code::io_error, "interrupted");
    group.fill(way.order, done, static_cast<std::size_t>(std::min<std::uint64_t>(kPage, records - done)));
    Look look{.compared = &group};
    KV_TRY(target.get(group, look));
    KV_TRY(check(look, group.records().size(), group.sum(), "compare"));
  }
  return {};
}

std::optional<std::uint64_t> stat_of(const Store& store, std::string_view name) {
  std::optional<std::uint64_t> found;
  store.stats([&](std::string_view stat, std::uint64_t value) {
    if (stat == name) found = value;
  });
  return found;
}

/// Reads every byte of the log once, megabyte by megabyte, and sums it up as its checksums are.
Result<double> pass_over_log(const fs::path& dir) {
  std::vector<char> buffer(std::size_t{1} << 20);
  std::uint64_t sum = 0;
  const auto start = Clock::now();
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.path().extension() != ".log") continue;
    auto file = File::open(Posix::real(), entry.path(), O_RDONLY);
    KV_TRY(file);
    auto size = file->size();
    KV_TRY(size);
    for (std::uint64_t at = 0; at < *size; at += buffer.size()) {
      const std::size_t bytes = std::min<std::uint64_t>(buffer.size(), *size - at);
      KV_TRY(file->read_at(buffer.data(), bytes, at));
      sum ^= XXH3_64bits(buffer.data(), bytes);
    }
  }
  asm volatile("" : : "r"(sum));  // The sums are wanted although nobody reads them.
  return ns_of(Clock::now() - start);
}

StoresWay filling(const std::string& spec, KeyOrder order) {
  return {.store = spec, .name = spec, .order = order, .open = {}};
}

Result<void> fill(Target& target, const std::string& spec, KeyOrder order, std::uint64_t records) {
  Figures unused;
  return put_all(target, filling(spec, order), records, unused);
}

/// In a child process, which kills itself when the last put has returned.
Result<void> fill_and_kill(const std::string& spec, KeyOrder order, const fs::path& dir, std::uint64_t records) {
  const pid_t child = ::fork();
  if (child < 0) return fail(errno, "fork");
  if (child == 0) {
    auto target = open_store_target(spec, dir, Durability::kernel);
    if (target && fill(**target, spec, order, records)) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail(errno, "waitpid");
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return {};
  return fail(Code::io_error, "a child process that was to fill {} failed", dir.native());
}

/// Opens and closes; the time of opening.
Result<double> time_opening(const std::string& spec, const fs::path& dir, std::uint64_t records) {
  auto parsed = parse_store_spec(spec);
  KV_TRY(parsed);
  const auto start = Clock::now();
  auto store = open_store(*parsed, {.dir = dir, .create = false});
  const double ns = ns_of(Clock::now() - start);
  KV_TRY(store);
  auto count = (*store)->count();
  KV_TRY(count);
  if (*count != records) return fail(Code::corrupt, "{} records of {} after opening", *count, records);
  KV_TRY((*store)->close());
  return ns;
}

/// With checkpoints so near to each other that the last one is recent when all records are there.
std::string with_checkpoints(const std::string& spec, std::uint64_t records) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
  if (spec.find("checkpoint=") != std::string::npos) return spec;
  return fmt::format("{},checkpoint={}", spec, std::max(records * (kStoresKeyBytes + kStoresValueBytes) / 16, kLeast));
}

/// Removes what the engine can make anew from its log.
void keep_the_log_alone(const fs::path& dir) {
  std::vector<fs::path> surplus;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const fs::path name = entry.path().filename();
    const bool needed = name.extension() == ".log" || name == "SEGMENTS" || name == "STORE" || name == "LOCK" ||
                        name == "ACKED" || name == "reserve";
    if (!needed) surplus.push_back(entry.path());
  }
  for (const fs::path& path : surplus) fs::remove(path);
}

/// Blocks of all files, in bytes.
std::uint64_t allocated_bytes(const fs::path& dir) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(dir)) {
    struct stat info {};
    // A file that compaction has just removed takes nothing.
    if (entry.path().extension() == ".log" && ::stat(entry.path().c_str(), &info) == 0)
      bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
  }
  return bytes;
}

/// So that a small run has some segments, too.
std::uint64_t segment_bytes_for(std::uint64_t records) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
  constexpr std::uint64_t kUsual = std::uint64_t{64} << 20;
  const std::uint64_t wanted = records * (kStoresKeyBytes + kStoresValueBytes) / 16;
  return std::clamp(wanted / kLeast * kLeast, kLeast, kUsual);
}

}  // namespace

Result<Figures> run_way(const StoresWay& way, const fs::path& dir, std::uint64_t records, bool compare) {
  Figures figures;
  auto target = way.open(dir);
  KV_TRY(target);
  KV_TRY(put_all(**target, way, records, figures));
  Store* const store = (*target)->store();
  if (store != nullptr) {
    if (const auto bytes = stat_of(*store, "index_bytes"))
      figures["index_bytes"] = static_cast<double>(*bytes) / static_cast<double>(records);
  }
  if (way.reads) {
    KV_TRY(get_some(**target, way, records, figures));
    if (store != nullptr) KV_TRY(scan_all(*store, records, figures));
    if (compare) KV_TRY(compare_all(**target, way, records));
  }
  KV_TRY((*target)->close());
  return figures;
}

Result<Figures> measure_opening(const std::string& spec, KeyOrder order, const fs::path& dir, std::uint64_t records) {
  Figures figures;
  auto target = open_store_target(spec, dir / "clean", Durability::kernel);
  KV_TRY(target);
  KV_TRY(fill(**target, spec, order, records));
  KV_TRY((*target)->close());
  target->reset();
  KV_TRY(pass_over_log(dir / "clean"));  // From now on it is in the page cache.
  auto pass = pass_over_log(dir / "clean");
  KV_TRY(pass);
  figures["pass"] = *pass;
  auto clean = time_opening(spec, dir / "clean", records);
  KV_TRY(clean);
  figures["clean"] = *clean;
  fs::remove_all(dir / "clean");
  for (const bool alone : {false, true}) {
    const std::string opened_with = alone ? spec : with_checkpoints(spec, records);
    KV_TRY(fill_and_kill(opened_with, order, dir / "killed", records));
    if (alone) keep_the_log_alone(dir / "killed");
    auto killed = time_opening(opened_with, dir / "killed", records);
    KV_TRY(killed);
    figures[alone ? "bare" : "killed"] = *killed;
    fs::remove_all(dir / "killed");
  }
  return figures;
}

Result<Figures> measure_overwriting(const std::string& engine, const fs::path& dir, std::uint64_t records) {
  constexpr std::size_t kGroup = 1'000;
  constexpr std::uint64_t kGroupsBetweenLooks = 16;
  const std::uint64_t segment_bytes = segment_bytes_for(records);
  const std::string spec = fmt::format("{},segment={}", engine, segment_bytes);
  auto target = open_store_target(spec, dir, Durability::kernel);
  KV_TRY(target);
  KV_TRY(fill(**target, spec, KeyOrder::random, records));
  const auto live = stat_of(*(*target)->store(), "live_bytes");
  if (!live || *live == 0) return fail(Code::unsupported, "{} does not say how much of it is live", engine);
  // Compaction begins when a third of what full segments hold is dead: not before, and always behind.
  const std::uint64_t groups = std::max<std::uint64_t>(records / kGroup, 1);
  const std::uint64_t quiet_to = std::max<std::uint64_t>(groups * 3 / 10, 1);
  const std::uint64_t busy_from = groups;
  const std::uint64_t end = groups * 3;
  Figures figures;
  Stopwatch quiet;
  Stopwatch busy;
  Stopwatch between;
  RecordGroup group;
  double space = 0;
  for (std::uint64_t turn = 0; turn < end; ++turn) {
    if (interrupted()) return fail(Code::io_error, "interrupted");
    group.pick(KeyOrder::random, records, turn, kGroup);
    Stopwatch& watch = turn < quiet_to ? quiet : turn < busy_from ? between : busy;
    KV_TRY(watch([&] { return (*target)->put(group); }));
    if (turn % kGroupsBetweenLooks != 0) continue;
    const std::uint64_t taken = allocated_bytes(dir);
    const std::uint64_t beyond = taken - std::min(taken, 2 * segment_bytes);
    space = std::max(space, static_cast<double>(beyond) / static_cast<double>(*live));
  }
  figures["space"] = space;
  figures["put"] = quiet.ns_each(quiet_to * kGroup);
  figures["put_compacting"] = busy.ns_each((end - busy_from) * kGroup);
  KV_TRY((*target)->close());
  return figures;
}

}  // namespace kvingest::bench
