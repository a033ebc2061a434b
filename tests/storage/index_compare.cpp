// index_compare.cpp -- our B+tree beside absl::btree_map: what a put and a get take of CPU time, and a key of memory.
// docs/decisions/0003-index.md has its figures.
//
//   test_index_compare [KEYS]
//
// prints a row for each order of keys and container: the best of nine rounds, and the median of the ratios to ours in
// the same round. The containers take turns, and what is measured is CPU time of the thread: what else runs on the
// machine then meets both.
//
// Keys have 16 bytes, which both containers hold whole.
#include <absl/container/btree_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "kvingest/codec/fixed.hpp"
#include "storage/index/bplus_tree.hpp"

namespace kvingest {
namespace {

constexpr std::size_t kSeries = 1000;
constexpr std::size_t kRounds = 9;
constexpr std::size_t kIndexBytesMax = std::size_t{4} << 30;

using Key = std::array<char, 16>;
std::string_view view(const Key& key) {
  return {key.data(), key.size()};
}
Key key_of(std::uint64_t high, std::uint64_t low) {
  Key key;
  codec::put_ordered(key.data(), high);
  codec::put_ordered(key.data() + 8, low);
  return key;
}

std::vector<Key> keys_in(std::string_view order, std::size_t count) {
  std::vector<Key> keys;
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < count; ++i) {
    if (order == "in order") keys.push_back(key_of(1, i));
    if (order == "1000 series") keys.push_back(key_of(i % kSeries, i / kSeries));
    if (order == "random") keys.push_back(key_of(random(), i));
  }
  return keys;
}

std::size_t allocated_bytes = 0;

template <class T>
struct Counting {
  using value_type = T;
  Counting() = default;
  template <class U>
  explicit(false) Counting(const Counting<U>& /*other*/) noexcept {}
  T* allocate(std::size_t count) {
    allocated_bytes += count * sizeof(T);
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* at, std::size_t count) noexcept {
    allocated_bytes -= count * sizeof(T);
    std::allocator<T>().deallocate(at, count);
  }
  friend bool operator==(const Counting&, const Counting&) { return true; }
};

class NoLongKeys final : public KeySource {
 public:
  [[nodiscard]] std::string_view key_at(std::uint64_t /*value*/) const override { return {}; }
};

struct Ours {
  NoLongKeys source;
  BplusTree tree = std::move(*BplusTree::create(source, kIndexBytesMax));
  void put(const Key& key, std::uint64_t value) { tree.put(view(key), value); }
  [[nodiscard]] bool has(const Key& key) const { return tree.find(view(key)).has_value(); }
  [[nodiscard]] std::size_t bytes() const { return tree.used_bytes(); }
};
struct Absl {
  absl::btree_map<Key, std::uint64_t, std::less<>, Counting<std::pair<const Key, std::uint64_t>>> tree;
  void put(const Key& key, std::uint64_t value) { tree.insert_or_assign(tree.end(), key, value); }
  [[nodiscard]] bool has(const Key& key) const { return tree.contains(key); }
  [[nodiscard]] static std::size_t bytes() { return allocated_bytes; }
};

struct Figures {
  std::vector<double> put_ns;  // Of each round.
  std::vector<double> get_ns;
  double key_bytes = 0;
};

double best(const std::vector<double>& rounds) {
  return *std::min_element(rounds.begin(), rounds.end());
}

double median_ratio(const std::vector<double>& rounds, const std::vector<double>& to) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < rounds.size(); ++i) ratios.push_back(rounds[i] / to[i]);
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

// Of this thread's CPU, so that others on the machine count for less.
double cpu_ns() {
  timespec now{};
  KV_ASSERT(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class Work>
double ns_each(std::size_t count, Work&& work) {
  const double begin = cpu_ns();
  work();
  return (cpu_ns() - begin) / static_cast<double>(count);
}

template <class Container>
void measure(const std::vector<Key>& keys, const std::vector<Key>& asked, Figures& figures) {
  Container container;
  figures.put_ns.push_back(ns_each(keys.size(), [&] {
    for (std::size_t i = 0; i < keys.size(); ++i) container.put(keys[i], i);
  }));
  std::size_t found = 0;
  figures.get_ns.push_back(ns_each(asked.size(), [&] {
    for (const Key& key : asked) found += container.has(key) ? 1 : 0;
  }));
  KV_ASSERT(found == asked.size());
  figures.key_bytes = static_cast<double>(container.bytes()) / static_cast<double>(keys.size());
}

void compare(std::size_t count) {
  fmt::print("{:12}  {:16} {:>8} {:>8} {:>8} {:>8} {:>10}\n", "order", "container", "put ns", "to ours", "get ns",
             "to ours", "bytes/key");
  for (const std::string_view order : {"in order", "1000 series", "random"}) {
    const std::vector<Key> keys = keys_in(order, count);
    std::vector<Key> asked = keys;
    std::shuffle(asked.begin(), asked.end(), std::mt19937_64(2));
    Figures ours;
    Figures absl;
    for (std::size_t round = 0; round < kRounds; ++round) {
      measure<Ours>(keys, asked, ours);
      measure<Absl>(keys, asked, absl);
    }
    for (const auto& [name, figures] : {std::pair("ours", &ours), std::pair("absl::btree_map", &absl)}) {
      fmt::print("{:12}  {:16} {:8.1f} {:8.2f} {:8.1f} {:8.2f} {:10.1f}\n", order, name, best(figures->put_ns),
                 median_ratio(figures->put_ns, ours.put_ns), best(figures->get_ns),
                 median_ratio(figures->get_ns, ours.get_ns), figures->key_bytes);
    }
  }
}

}  // namespace
}  // namespace kvingest

int main(int argc, char* argv[]) {
  kvingest::compare(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000);
}
