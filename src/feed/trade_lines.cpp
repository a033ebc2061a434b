#include <algorithm>
#include <array>
#include <charconv>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "feed/line_source.hpp"

namespace kvingest::feed {
namespace {

constexpr std::size_t kSymbols = 500;
constexpr std::size_t kNameBytesMax = 4;
constexpr std::size_t kTradeBytesMax = 64;  // 4 name, 19 time, 20 price, 6 size, separators.
constexpr std::uint64_t kDayNs = 86'400'000'000'000;
constexpr std::uint64_t kFirstTradeNs = 1'704'205'800'000'000'000;  // 2024-01-02T14:30:00Z, a market's opening.
constexpr std::uint32_t kGapNsMax = 20'000;
constexpr std::int64_t kPriceCentsMin = 100;
constexpr std::uint32_t kPriceCentsStartMax = 50'000;

/// splitmix64: a few operations a number, and the same sequence everywhere (the distributions of <random> differ
/// between libraries).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  /// From 0 up to but without `bound`.
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32); }

 private:
  std::uint64_t state_;
};

struct Symbol {
  std::string name;
  std::int64_t price_cents;
};

std::vector<Symbol> make_symbols(Random& random) {
  std::set<std::string> taken;
  std::vector<Symbol> symbols;
  while (symbols.size() < kSymbols) {
    std::string name(2 + random.below(kNameBytesMax - 1), 'A');
    for (char& c : name) c = static_cast<char>('A' + random.below(26));
    if (!taken.insert(name).second) continue;
    symbols.push_back({name, kPriceCentsMin + random.below(kPriceCentsStartMax)});
  }
  return symbols;
}

/// Which symbol trades: number k with a share of 1/(k+1), as in Zipf's law. Each place of the table is worth the same,
/// so that choosing is one load.
std::vector<std::uint16_t> make_mix() {
  double sum = 0;
  for (std::size_t k = 0; k < kSymbols; ++k) sum += 1.0 / static_cast<double>(k + 1);
  constexpr std::size_t kPlaces = 1 << 14;
  std::vector<std::uint16_t> mix;
  for (std::size_t k = 0; k < kSymbols; ++k) {
    const double share = 1.0 / static_cast<double>(k + 1) / sum;
    const auto places = std::max<std::size_t>(1, static_cast<std::size_t>(share * kPlaces));
    mix.insert(mix.end(), places, static_cast<std::uint16_t>(k));
  }
  return mix;
}

class TradeLines final : public LineSource {
 public:
  TradeLines(std::uint64_t seed, std::uint64_t count)
      : random_(seed),
        symbols_(make_symbols(random_)),
        mix_(make_mix()),
        time_ns_(kFirstTradeNs + seed % 10'000 * kDayNs),
        left_(count) {}

  Result<Chunk> next(std::uint64_t lines_max) override {
    const std::uint64_t lines = std::min({lines_max, left_, std::uint64_t{kChunkBytes / kTradeBytesMax}});
    chunk_.resize(lines * kTradeBytesMax);
    char* to = chunk_.data();
    for (std::uint64_t i = 0; i < lines; ++i) to = append_trade(to);
    left_ -= lines;
    return Chunk{{chunk_.data(), static_cast<std::size_t>(to - chunk_.data())}, lines};
  }

 private:
  char* append_trade(char* to) {
    Symbol& symbol = symbols_[mix_[random_.below(static_cast<std::uint32_t>(mix_.size()))]];
    time_ns_ += 1 + random_.below(kGapNsMax);
    const std::int64_t step = static_cast<std::int64_t>(random_.below(11)) - 5;
    symbol.price_cents = std::max(kPriceCentsMin, symbol.price_cents + step);

    to += symbol.name.copy(to, symbol.name.size());
    *to++ = ',';
    to = append_number(to, time_ns_);
    *to++ = ',';
    to = append_number(to, static_cast<std::uint64_t>(symbol.price_cents / 100));
    *to++ = '.';
    *to++ = static_cast<char>('0' + symbol.price_cents / 10 % 10);
    *to++ = static_cast<char>('0' + symbol.price_cents % 10);
    *to++ = ',';
    to = append_number(to, make_size());
    *to++ = '\n';
    return to;
  }

  /// Most trades are of round lots, some of a few pieces, few are large.
  std::uint64_t make_size() {
    const std::uint32_t kind = random_.below(16);
    if (kind < 4) return 1 + random_.below(99);
    return (kind < 15 ? 1 + random_.below(9) : 10 + random_.below(200)) * std::uint64_t{100};
  }

  static char* append_number(char* to, std::uint64_t number) { return std::to_chars(to, to + 20, number).ptr; }

  Random random_;
  std::vector<Symbol> symbols_;
  std::vector<std::uint16_t> mix_;
  std::uint64_t time_ns_;
  std::uint64_t left_;
  std::vector<char> chunk_;
};

}  // namespace

std::unique_ptr<LineSource> trade_lines(std::uint64_t seed, std::uint64_t count) {
  return std::make_unique<TradeLines>(seed, count);
}

}  // namespace kvingest::feed
