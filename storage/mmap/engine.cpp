// engine.cpp -- the row of the mmap engine and its options.
#include <unistd.h>

#include <array>

#include "base/quantity.hpp"
#include "storage/engine_rows.hpp"
#include "storage/mmap/mmap_store.hpp"

namespace kvingest {
namespace {

constexpr std::uint64_t kSegmentBytesMin = std::uint64_t{64} << 10;
constexpr std::uint64_t kSegmentBytesMax = std::uint64_t{4} << 30;
constexpr std::uint64_t kIndexBytesMin = std::uint64_t{1} << 20;

constexpr std::array<EngineOption, 5> kOptions{{
    {"segment", "64M", "size of one log file, 64K to 4G"},
    {"index", "auto", "memory for the index of keys that are not {seq}; auto: half of this machine's memory"},
    {"compact", "128M",
     "bytes a second that compaction moves at most while the writer does not wait for it, 1M to 64G"},
    {"checkpoint", "256M",
     "bytes of log after which the index is written to disk, so that opening need not read them; 64K to 1T"},
    {"write", "file", "file: frames are written by pwritev; map: they are copied into the mapping, to compare"},
}};

std::string_view option(const EngineOptions& options, std::string_view name) {
  const auto given = options.find(name);
  if (given != options.end()) return given->second;
  for (const EngineOption& known : kOptions) {
    if (known.name == name) return known.fallback;
  }
  return {};
}

Result<std::uint64_t> size_option(const EngineOptions& options, std::string_view name, std::uint64_t least,
                                  std::uint64_t most) {
  auto bytes = parse_size(option(options, name));
  if (!bytes) return fail(std::move(bytes).error(), "option {} of store mmap", name);
  if (*bytes < least || *bytes > most) {
    return fail(Code::invalid_argument, "option {} of store mmap: {} is not between {} and {}", name,
                format_size(*bytes), format_size(least), format_size(most));
  }
  return bytes;
}

std::uint64_t machine_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return std::uint64_t{4} << 30;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

Result<mmap_store::Options> parse_options(const EngineOptions& options) {
  auto segment = size_option(options, "segment", kSegmentBytesMin, kSegmentBytesMax);
  KV_TRY(segment);
  std::uint64_t index_bytes = machine_memory_bytes() / 2;
  if (option(options, "index") != "auto") {
    auto given = size_option(options, "index", kIndexBytesMin, std::uint64_t{1} << 42);
    KV_TRY(given);
    index_bytes = *given;
  }
  auto compact = size_option(options, "compact", std::uint64_t{1} << 20, std::uint64_t{64} << 30);
  KV_TRY(compact);
  auto checkpoint = size_option(options, "checkpoint", std::uint64_t{64} << 10, std::uint64_t{1} << 40);
  KV_TRY(checkpoint);
  const std::string_view write = option(options, "write");
  if (write != "file" && write != "map") {
    return fail(Code::invalid_argument, "option write of store mmap: '{}' is neither file nor map", write);
  }
  return mmap_store::Options{.segment_bytes = *segment,
                             .index_bytes_max = index_bytes,
                             .compact_bytes_per_second = *compact,
                             .checkpoint_bytes = *checkpoint,
                             .write_through_map = write == "map"};
}

Result<void> check_mmap(const EngineOptions& options) {
  KV_TRY(parse_options(options));
  return {};
}

Result<std::unique_ptr<Store>> open_mmap(const EngineContext& context) {
  const auto options = parse_options(context.options);
  KV_TRY(options);
  return mmap_store::MmapStore::open(context, *options);
}

}  // namespace

constinit const Engine kMmapEngine{
    .name = "mmap",
    .summary = "log of memory-mapped segments with an ordered index in memory: the fastest durable ingest",
    .persistent = true,
    .shared_readers = false,
    .format_version = mmap_store::kSegmentVersion,
    .options = kOptions,
    .missing = {},
    .check = check_mmap,
    .open = open_mmap,
};

}  // namespace kvingest
