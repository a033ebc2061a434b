// The net suite: what the network itself allows on this machine, receiving and throwing away; how each codec's rate
// stands beside that; and values that are encoded, sent, received and decoded, as many as are asked for.
#include <algorithm>
#include <memory>

#include "base/interrupt.hpp"
#include "base/quantity.hpp"
#include "bench/codec_rivals.hpp"
#include "bench/micro.hpp"
#include "bench/net_ways.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace kvingest::bench {
namespace {

constexpr double kKib = 1024;
constexpr std::uint64_t kDiscardBytes = std::uint64_t{32} << 20;  // In one measurement.
constexpr std::uint64_t kShareValues = 1'000'000;
constexpr std::uint64_t kUsualStreamed = 20'000'000;
constexpr std::uint64_t kTrialValues = 1'000'000;  // To know how long many will take.

struct Streamed {
  const char* name;
  ValueAt value_at;
};

const Streamed kStreamed[] = {
    {"0..127", [](std::uint64_t i) { return static_cast<std::uint32_t>(i * 0x9E3779B1U >> 8 & 127); }},
    {"1..n", [](std::uint64_t i) { return static_cast<std::uint32_t>(i + 1); }},
    {"1<<29", [](std::uint64_t) { return std::uint32_t{1} << 29; }},
};

constexpr codec::Form kForms[] = {codec::Form::leb128, codec::Form::stop_bit, codec::Form::fixed};

MicroRow net_row(const std::string& group, const std::string& workload, std::string name, double bytes) {
  MicroRow row;
  row.group = group;
  row.name = std::move(name);
  row.subject.workload = workload;
  row.items = bytes / kKib;
  return row;
}

/// Receives in one way. What goes wrong while it is measured is found afterwards.
void add_receive(MicroPlan& plan, const std::string& group, const ReceiveWay& way, const Placement& placement) {
  MicroRow row = net_row(group, "receive and discard", std::string(way.name), static_cast<double>(kDiscardBytes));
  const auto problem = std::make_shared<std::string>();
  const auto once = [&way, placement, problem] {
    if (const auto lines = send_and_discard(way, kDiscardBytes, placement); !lines) *problem = lines.error().text;
  };
  row.run = once;
  row.check = row.after = [once, problem]() -> Result<void> {
    once();
    if (problem->empty()) return {};
    return fail(Code::io_error, "{}", *problem);
  };
  plan.rows.push_back(std::move(row));
}

/// Decoding, by the bytes that it reads: those that came from the network.
struct ShareData {
  std::vector<std::uint32_t> values;
  std::vector<std::uint32_t> decoded;
  std::string bytes;
};

template <class Decode>
void add_decode(MicroPlan& plan, const std::string& group, const std::string& workload, std::string name,
                const std::shared_ptr<ShareData>& data, std::size_t bytes, Decode decode) {
  MicroRow row = net_row(group, workload, std::move(name), static_cast<double>(bytes));
  row.run = [decode] { static_cast<void>(decode()); };
  row.check = [decode, data]() -> Result<void> {
    std::fill(data->decoded.begin(), data->decoded.end(), 0);
    if (decode() && data->decoded == data->values) return {};
    return fail(Code::corrupt, "what was read is not what was written");
  };
  plan.rows.push_back(std::move(row));
}

std::shared_ptr<ShareData> share_data(const Streamed& kind, std::uint64_t count) {
  auto data = std::make_shared<ShareData>();
  data->values.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) data->values[i] = kind.value_at(i);
  data->decoded.resize(count);
  data->bytes.resize(2 * codec::encoded_bytes_max<std::uint32_t>(count) + 64);
  return data;
}

void add_shares(MicroPlan& plan, const Streamed& kind, std::uint64_t count, const Placement& placement) {
  const std::string group = fmt::format("decoding {} as a share of it", kind.name);
  const std::string workload = fmt::format("share of the network, {}", kind.name);
  const auto limit = std::find_if(receive_ways().begin(), receive_ways().end(),
                                  [](const ReceiveWay& way) { return way.name == kNetworkLimit; });
  add_receive(plan, group, *limit, placement);
  plan.rows.back().subject.workload = workload;
  for (const codec::Form form : kForms) {
    const auto data = share_data(kind, count);
    const char* const end = codec::encode_array<std::uint32_t>(form, data->values, data->bytes.data());
    const auto size = static_cast<std::size_t>(end - data->bytes.data());
    add_decode(plan, group, workload, std::string(to_string(form)), data, size, [data, form, size] {
      return codec::decode_array<std::uint32_t>(form, {data->bytes.data(), size}, data->decoded).has_value();
    });
  }
  for (const CodecRival& rival : codec_rivals()) {
    if (rival.decode == nullptr) continue;
    if (!rival.missing.empty()) {
      plan.rows.push_back(net_row(group, workload, std::string(rival.name), kKib));
      plan.rows.back().missing = rival.missing;
      continue;
    }
    const auto data = share_data(kind, count);
    const std::size_t size = rival.encode(data->values, data->bytes.data());
    add_decode(plan, group, workload, std::string(rival.name), data, size, [data, &rival, size] {
      return rival.decode({data->bytes.data(), size}, data->decoded);
    });
  }
}

// ---- Streams ----------------------------------------------------------------------------------------------------

/// A stream of one form and kind of values: repeated, as far as the time budget goes.
class StreamRow {
 public:
  StreamRow(Bench& bench, codec::Form form, const Streamed& kind, std::uint64_t count)
      : bench_(bench), form_(form), kind_(kind), count_(count) {
    subject_ = {.suite = "net", .workload = fmt::format("stream, {}", kind.name)};
    subject_.params = {{"values", count}};
    subject_.variant = to_string(form);
  }

  Result<void> operator()(Table& table) {
    KV_TRY(measure());
    if (ns_each_.empty()) {
      bench_.results.add_missing(subject_, "ns_per_streamed", "ns", refused_);
      table.note(fmt::format("{} {}: {}", subject_.variant, kind_.name, refused_));
      return {};
    }
    bench_.results.add(subject_, "ns_per_streamed", "ns", ns_each_);
    bench_.results.add(subject_, "wire_bytes_per_second", "1/s", bytes_per_second_);
    table.add({subject_.variant, kind_.name, format_grouped(count_), fmt::format("{:.1f}", 1e3 / median(ns_each_)),
               fmt::format("{:.0f}", spread(ns_each_) * 50), fmt::format("{:.2f}", median(bytes_per_second_) / 1e9),
               fmt::format("{:.2f}", static_cast<double>(count_) * median(ns_each_) / 1e9),
               std::to_string(ns_each_.size())});
    return {};
  }

 private:
  Result<void> measure() {
    auto trial = stream_values(form_, kind_.value_at, std::min(count_, kTrialValues), bench_.placement);
    KV_TRY(trial);
    const double trial_values = static_cast<double>(std::min(count_, kTrialValues));
    const double expected_seconds = trial->seconds * static_cast<double>(count_) / trial_values;
    for (std::uint64_t repeat = 0; repeat < bench_.settings.repeat; ++repeat) {
      if (interrupted()) return fail(Code::io_error, "interrupted");
      const double left = seconds_left();
      if (left < expected_seconds) {
        refused_ = fmt::format("{} values take about {:.0f} s, and --time-budget leaves {:.0f} s",
                               format_grouped(count_), expected_seconds, std::max(left, 0.0));
        break;
      }
      auto streamed = stream_values(form_, kind_.value_at, count_, bench_.placement);
      KV_TRY(streamed);
      ns_each_.push_back(streamed->seconds * 1e9 / static_cast<double>(count_));
      bytes_per_second_.push_back(static_cast<double>(streamed->bytes) / streamed->seconds);
      if (!bench_.settings.quiet)
        fmt::print(stderr, "net: stream of {} {}: {:.1f} s\n", subject_.variant, kind_.name, streamed->seconds);
    }
    return {};
  }

  [[nodiscard]] double seconds_left() const {
    if (!bench_.settings.time_budget) return std::numeric_limits<double>::infinity();
    const std::chrono::duration<double> used = std::chrono::steady_clock::now() - bench_.start;
    return std::chrono::duration<double>(*bench_.settings.time_budget).count() - used.count();
  }

  Bench& bench_;
  codec::Form form_;
  const Streamed& kind_;
  std::uint64_t count_;
  Subject subject_;
  std::vector<double> ns_each_;
  std::vector<double> bytes_per_second_;
  std::string refused_;
};

Result<void> run_streams(Bench& bench, std::uint64_t count) {
  Table table("net: values encoded, sent over loopback, received and decoded",
              {"form", "values", "count", "M/s", "+-%", "GB/s", "seconds", "repeats"}, 2);
  for (const codec::Form form : kForms) {
    for (const Streamed& kind : kStreamed) KV_TRY(StreamRow(bench, form, kind, count)(table));
  }
  table.note("In blocks of 65,536; the sums of what was sent and of what came are compared. GB/s: on the wire.");
  bench.tables += table.text() + "\n";
  return {};
}

}  // namespace

/// Streams need none, whatever their length.
Needs net_needs(const Settings& settings) {
  constexpr std::uint64_t kBytesPerValue = 6 * 3 * (4 + 4 + 10);
  return {.memory_bytes = std::min(settings.items.value_or(kShareValues), kShareValues) * kBytesPerValue};
}

Result<void> run_net_suite(Bench& bench) {
  MicroPlan plan{.suite = "net", .item = "KiB"};
  for (const ReceiveWay& way : receive_ways()) add_receive(plan, "receive and discard", way, bench.placement);
  const std::uint64_t values = std::min(bench.sizes({kShareValues}).front(), kShareValues);
  for (const Streamed& kind : kStreamed) add_shares(plan, kind, values, bench.placement);
  plan.ratios = {{std::string(kNetworkLimit), "ratio_to_network_limit"}};
  plan.notes = {"Two pinned threads over TCP on loopback. low water: woken for 64 KiB at least, the limit that others",
                "are held against: a receiver that is woken for each send makes the sender pay for waking it.",
                "MSG_TRUNC throws bytes away without copying them. Decoding: by the encoded bytes, so a rate of 2",
                "takes in twice what the network brings."};
  KV_TRY(run_micro(bench, plan));
  return run_streams(bench, bench.sizes({kUsualStreamed}).front());
}

}  // namespace kvingest::bench
