// A record of 64 bytes to its place in a file: the ways to seek and write, and what syncing costs on top.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/posix.hpp"
#include "bench/micro.hpp"
#include "bench/seed.hpp"
#include "kvingest/codec/fixed.hpp"

namespace kvingest::bench {
namespace {

constexpr std::size_t kSlotBytes = 64;
constexpr std::uint64_t kHotSlots = 10;
constexpr std::uint64_t kSyncsAtMost = 1'000;  // In one measurement: a disk may take milliseconds for each.
constexpr std::size_t kVector = 64;            // Records of one pwritev.

using Slot = std::array<char, kSlotBytes>;

enum class SeekWay : std::uint8_t { fstream, lseek_write, pwrite, pwritev, dsync, fdatasync };

struct SeekVariant {
  const char* name;
  SeekWay way;
  std::uint64_t sync_every = 0;
};

constexpr SeekVariant kSeekVariants[] = {
    {"fstream seekp, write", SeekWay::fstream},
    {"lseek, write", SeekWay::lseek_write},
    {"pwrite", SeekWay::pwrite},
    {"pwritev of 64", SeekWay::pwritev},
    {"pwrite, O_DSYNC", SeekWay::dsync, 1},
    {"pwrite, fdatasync every 1", SeekWay::fdatasync, 1},
    {"pwrite, fdatasync every 10", SeekWay::fdatasync, 10},
    {"pwrite, fdatasync every 100", SeekWay::fdatasync, 100},
    {"pwrite, fdatasync every 1000", SeekWay::fdatasync, 1'000},
};

Slot slot_with(std::uint64_t number) {
  Slot slot;
  slot.fill('x');
  codec::put_fixed(slot.data(), number);
  return slot;
}

/// `count` records, each to its slot of `slots`: number i to slot i % slots.
class SeekWriter {
 public:
  SeekWriter(std::filesystem::path path, const SeekVariant& variant, std::uint64_t count, std::uint64_t slots)
      : path_(std::move(path)), variant_(variant), count_(count), slots_(slots) {}

  Result<void> open() {
    const int flags = O_RDWR | O_CREAT | O_TRUNC | (variant_.way == SeekWay::dsync ? O_DSYNC : 0);
    auto file = File::open(Posix::real(), path_, flags);
    KV_TRY(file);
    file_ = *std::move(file);
    KV_TRY(file_.allocate(0, slots_ * kSlotBytes));  // What is measured is not the file growing.
    if (variant_.way == SeekWay::fstream) stream_.open(path_, std::ios::in | std::ios::out | std::ios::binary);
    return {};
  }

  void run() {
    switch (variant_.way) {
      case SeekWay::fstream:
        return run_fstream();
      case SeekWay::lseek_write:
        return run_lseek_write();
      case SeekWay::pwritev:
        return run_pwritev();
      case SeekWay::pwrite:
      case SeekWay::dsync:
      case SeekWay::fdatasync:
        return run_pwrite();
    }
  }

  /// Each slot holds the last record that was written to it.
  Result<void> check() const {
    if (!good_) return fail(Code::io_error, "a write or a sync of {} failed", path_.native());
    for (std::uint64_t slot = 0; slot < std::min(slots_, count_); ++slot) {
      const std::uint64_t last = slot + (count_ - 1 - slot) / slots_ * slots_;
      Slot there;
      KV_TRY(file_.read_at(there.data(), there.size(), slot * kSlotBytes));
      if (there != slot_with(last)) return fail(Code::corrupt, "slot {} does not hold record {}", slot, last);
    }
    return {};
  }

 private:
  [[nodiscard]] off_t place(std::uint64_t number) const { return static_cast<off_t>(number % slots_ * kSlotBytes); }

  void run_fstream() {
    for (std::uint64_t i = 0; i < count_; ++i) {
      const Slot slot = slot_with(i);
      stream_.seekp(place(i));
      stream_.write(slot.data(), static_cast<std::streamsize>(slot.size()));
    }
    stream_.flush();
    good_ = stream_.good() && good_;
  }

  void run_lseek_write() {
    for (std::uint64_t i = 0; i < count_; ++i) {
      const Slot slot = slot_with(i);
      good_ = ::lseek(file_.fd(), place(i), SEEK_SET) == place(i) && good_;
      good_ = ::write(file_.fd(), slot.data(), slot.size()) == static_cast<ssize_t>(slot.size()) && good_;
    }
  }

  void run_pwrite() {
    std::uint64_t unsynced = 0;
    for (std::uint64_t i = 0; i < count_; ++i) {
      const Slot slot = slot_with(i);
      good_ = ::pwrite(file_.fd(), slot.data(), slot.size(), place(i)) == static_cast<ssize_t>(slot.size()) && good_;
      if (variant_.way != SeekWay::fdatasync || ++unsynced < variant_.sync_every) continue;
      good_ = ::fdatasync(file_.fd()) == 0 && good_;
      unsynced = 0;
    }
  }

  /// Neighbours in one call, up to the file's end.
  void run_pwritev() {
    std::array<Slot, kVector> slots;
    std::array<iovec, kVector> parts;
    for (std::uint64_t i = 0; i < count_;) {
      const std::uint64_t first = i;
      std::size_t taken = 0;
      do {
        slots[taken] = slot_with(i);
        parts[taken] = {slots[taken].data(), kSlotBytes};
        ++taken;
        ++i;
      } while (i < count_ && taken < kVector && i % slots_ != 0);
      const ssize_t written = ::pwritev(file_.fd(), parts.data(), static_cast<int>(taken), place(first));
      good_ = written == static_cast<ssize_t>(taken * kSlotBytes) && good_;
    }
  }

  std::filesystem::path path_;
  const SeekVariant& variant_;
  const std::uint64_t count_;
  const std::uint64_t slots_;
  File file_;
  std::fstream stream_;
  bool good_ = true;
};

Result<void> add_seek_row(const Bench& bench, MicroPlan& plan, const SeekVariant& variant, std::uint64_t operations,
                          bool is_hot) {
  std::uint64_t count = operations;
  if (variant.sync_every != 0) count = std::min(count, kSyncsAtMost * variant.sync_every);
  const auto path = bench.work_dir / fmt::format("seek{}", plan.rows.size());
  auto writer = std::make_shared<SeekWriter>(path, variant, count, is_hot ? kHotSlots : count);
  KV_TRY(writer->open());
  MicroRow row;
  row.group = fmt::format("{} records to {}", operations, is_hot ? "ten places in turns" : "places in a row");
  row.name = variant.name;
  row.subject.workload = is_hot ? "seekwrite, ten places" : "seekwrite, in a row";
  row.subject.params = {{"operations", operations}};
  row.items = static_cast<double>(count);
  row.run = [writer] { writer->run(); };
  row.check = [writer]() -> Result<void> {
    writer->run();
    return writer->check();
  };
  row.after = [writer] { return writer->check(); };
  plan.rows.push_back(std::move(row));
  return {};
}

}  // namespace

Result<void> run_seed_seekwrite(Bench& bench) {
  MicroPlan plan{.suite = "seed", .item = "record"};
  plan.cycles_per_ns = cycles_per_ns();
  for (const std::uint64_t operations : bench.sizes({1'000, 2'000'000})) {
    for (const bool is_hot : {true, false}) {
      for (const SeekVariant& variant : kSeekVariants) KV_TRY(add_seek_row(bench, plan, variant, operations, is_hot));
    }
  }
  plan.ratios = {{"lseek, write", "ratio_to_seek_write"}};
  plan.notes = {"Records of 64 bytes. A row that syncs does so at most 1,000 times in a measurement, with fewer",
                "records where they would need more. Files are allocated before; what they hold is compared.",
                "pwritev of 64: neighbours in one call, so ten places give ten."};
  return run_micro(bench, plan);
}

}  // namespace kvingest::bench
