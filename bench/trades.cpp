#include "bench/trades.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>
#include <string>

#include "base/posix.hpp"
#include "feed/line_source.hpp"

namespace kvingest::bench {
namespace {

constexpr std::size_t kLinesAPiece = 10'000;
constexpr std::string_view kSymbolName = "{\"symbol\":\"";
constexpr std::string_view kTimeName = "\",\"ts\":";

/// Appends to a file in pieces.
class LineWriter {
 public:
  static Result<LineWriter> create(const std::filesystem::path& path) {
    auto file = File::open(Posix::real(), path, O_WRONLY | O_CREAT | O_TRUNC);
    KV_TRY(file);
    return LineWriter(*std::move(file), path);
  }
  void add(std::string_view line) {
    line_.digest += line_digest(line);
    piece_.append(line).push_back('\n');
  }
  Result<void> write_piece() {
    KV_TRY(file_.write_at(piece_, bytes_));
    bytes_ += piece_.size();
    piece_.clear();
    return {};
  }
  [[nodiscard]] const LineFile& made() const noexcept { return line_; }

 private:
  LineWriter(File file, std::filesystem::path path) : file_(std::move(file)), line_{std::move(path), 0} {}

  File file_;
  LineFile line_;
  std::string piece_;
  std::uint64_t bytes_ = 0;
};

/// The next field of a csv line without quotes.
std::string_view take_field(std::string_view& line) {
  const std::size_t comma = std::min(line.find(','), line.size());
  const std::string_view field = line.substr(0, comma);
  line.remove_prefix(std::min(comma + 1, line.size()));
  return field;
}

void append_json(std::string& to, std::string_view csv) {
  to.append(kSymbolName).append(take_field(csv));
  to.append(kTimeName).append(take_field(csv));
  to.append(",\"price\":").append(take_field(csv));
  to.append(",\"size\":").append(csv).append("}");
}

}  // namespace

Result<Trades> write_trades(const std::filesystem::path& dir, std::uint64_t count, std::uint64_t seed) {
  auto csv = LineWriter::create(dir / "trades.csv");
  KV_TRY(csv);
  auto json = LineWriter::create(dir / "trades.json");
  KV_TRY(json);
  const auto source = feed::trade_lines(seed, count);
  std::string object;
  for (std::uint64_t made = 0; made < count;) {
    const auto chunk = source->next(kLinesAPiece);
    KV_TRY(chunk);
    made += chunk->lines;
    for (std::string_view rest = chunk->bytes; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(line.size() + 1);
      csv->add(line);
      object.clear();
      append_json(object, line);
      json->add(object);
    }
    KV_TRY(csv->write_piece());
    KV_TRY(json->write_piece());
  }
  return Trades{csv->made(), json->made()};
}

std::uint64_t line_digest(std::string_view line) {
  return XXH3_64bits(line.data(), line.size());
}

std::uint64_t numbered_digest(std::uint64_t count) {
  constexpr std::string_view kMessage = "Benchmark Message ";
  char line[kMessage.size() + 20];
  kMessage.copy(line, kMessage.size());
  std::uint64_t digest = 0;
  for (std::uint64_t n = 0; n < count; ++n) {
    const char* const end = std::to_chars(line + kMessage.size(), line + sizeof line, n).ptr;
    digest += line_digest({line, static_cast<std::size_t>(end - line)});
  }
  return digest;
}

std::string_view trade_symbol(std::string_view line) {
  if (line.starts_with(kSymbolName)) {
    line.remove_prefix(kSymbolName.size());
    return line.substr(0, line.find('"'));
  }
  return take_field(line);
}

std::string_view trade_time(std::string_view line) {
  if (line.starts_with(kSymbolName)) {
    line.remove_prefix(std::min(line.find(kTimeName) + kTimeName.size(), line.size()));
    return take_field(line);
  }
  take_field(line);
  return take_field(line);
}

}  // namespace kvingest::bench
