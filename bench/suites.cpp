#include <algorithm>
#include <array>

#include "bench/suite.hpp"

namespace kvingest::bench {
namespace {

constexpr std::uint64_t kUsualItems = 1'000'000;

/// What a store needs for a line of a run, at most (slots, indexes, logs and their copies), and beside the lines.
Needs ingest_needs(const Settings& settings) {
  constexpr std::uint64_t kDiskBytesPerMessage = 450;  // With the lines of two formats.
  constexpr std::uint64_t kDiskBytesBeside = std::uint64_t{256} << 20;
  return {.disk_bytes = kDiskBytesBeside + settings.messages * kDiskBytesPerMessage};
}

/// For each value of its four distributions: itself, decoded, encoded by everyone, and the room to encode to.
Needs codec_needs(const Settings& settings) {
  constexpr std::uint64_t kBytesPerValue = 4 * (4 + 4 + 10 + 6 * 5);
  return {.memory_bytes = settings.items.value_or(kUsualItems) * kBytesPerValue};
}

/// For each node of its three shapes: itself, its place in the order, in three forms as bytes; and one more tree.
Needs tree_needs(const Settings& settings) {
  constexpr std::uint64_t kBytesPerNode = 3 * (12 + 8 + 5 + 8 + 12) + 50;
  return {.memory_bytes = settings.items.value_or(kUsualItems) * kBytesPerNode};
}

/// For each key: itself and its value, and the same in each store.
Needs dbbench_needs(const Settings& settings) {
  constexpr std::uint64_t kUsualKeys = 100'000;
  constexpr std::uint64_t kBytesPerKey = 300;
  constexpr std::uint64_t kStores = 6;
  constexpr std::uint64_t kBesideBytes = std::uint64_t{512} << 20;  // Logs that grow while overwriting is measured.
  const std::uint64_t bytes = settings.items.value_or(kUsualKeys) * kBytesPerKey * kStores;
  return {.disk_bytes = bytes + kBesideBytes, .memory_bytes = bytes};
}

/// One store at a time: its records, twice while it is overwritten, and segments made ahead; its index, and caches.
Needs stores_needs(const Settings& settings) {
  constexpr std::uint64_t kRecordsByDefault = 2'000'000;
  constexpr std::uint64_t kDiskBytesPerRecord = 600;
  constexpr std::uint64_t kMemoryBytesPerRecord = 80;
  constexpr std::uint64_t kBesideBytes = std::uint64_t{512} << 20;
  const std::uint64_t records = settings.items.value_or(kRecordsByDefault);
  return {.disk_bytes = records * kDiskBytesPerRecord + kBesideBytes,
          .memory_bytes = records * kMemoryBytesPerRecord + kBesideBytes};
}

Needs quick_needs(const Settings& settings) {
  const Needs ingest = ingest_needs(settings);
  const Needs dbbench = dbbench_needs(settings);
  return {.disk_bytes = std::max(ingest.disk_bytes, dbbench.disk_bytes), .memory_bytes = dbbench.memory_bytes};
}

Needs no_needs(const Settings&) {
  return {};
}

constexpr std::array kSuites = {
    Suite{"quick", "all stores in a minute and a half: smaller runs of ingest and dbbench", true, quick_needs,
          run_quick_suite},
    Suite{"ingest", "messages per second from the socket into each store", true, ingest_needs, run_ingest_suite},
    Suite{"dbbench", "reading and overwriting on each store, in this process", true, dbbench_needs, run_dbbench_suite},
    Suite{"stores", "the engines beside what bounds them: their own interfaces, each other, plain files", true,
          stores_needs, run_stores_suite},
    Suite{"codec", "arrays of integers to bytes and back, beside protobuf and streamvbyte", false, codec_needs,
          run_codec_suite},
    Suite{"pool", "what running a body on several threads costs, beside OpenMP and new threads", false, no_needs,
          run_pool_suite},
    Suite{"tree", "binary trees to bytes and back, beside walking and building them", false, tree_needs,
          run_tree_suite},
};

}  // namespace

std::span<const Suite> suites() noexcept {
  return kSuites;
}

}  // namespace kvingest::bench
