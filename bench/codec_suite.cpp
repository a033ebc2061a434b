// The codec suite: arrays of 32-bit integers in every form and way, beside protobuf, streamvbyte and memcpy.
#include <algorithm>
#include <array>
#include <memory>
#include <random>

#include "bench/codec_rivals.hpp"
#include "bench/micro.hpp"
#include "kvingest/codec/integer_array.hpp"

namespace kvingest::bench {
namespace {

using codec::Form;
using codec::Path;
using Values = std::vector<std::uint32_t>;

constexpr std::uint64_t kUsualValues = 1'000'000;

struct Distribution {
  std::string name;
  Values (*make)(std::size_t count, std::uint64_t seed);
};

const Distribution kDistributions[] = {
    {"0..127",
     [](std::size_t count, std::uint64_t seed) {
       std::mt19937_64 random(seed);
       Values values(count);
       for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random() & 127);
       return values;
     }},
    {"1..n",
     [](std::size_t count, std::uint64_t) {
       Values values(count);
       for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint32_t>(i + 1);
       return values;
     }},
    {"1<<29", [](std::size_t count, std::uint64_t) { return Values(count, std::uint32_t{1} << 29); }},
    {"any length",
     [](std::size_t count, std::uint64_t seed) {
       std::mt19937_64 random(seed);
       Values values(count);
       for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random() >> (32 + random() % 32));
       return values;
     }},
};

/// What rows of one table share.
struct Data {
  Values values;
  Values decoded;
  std::vector<char> room;
  std::array<std::shared_ptr<const std::string>, 3> encoded;  ///< In each form.
};

/// Bytes for `count` values in any of the forms: streamvbyte may read and write some beyond.
std::size_t room_bytes(std::size_t count) {
  return 2 * codec::encoded_bytes_max<std::uint32_t>(count) + 64;
}

class CodecPlan {
 public:
  CodecPlan(MicroPlan& plan, const Distribution& distribution, std::size_t count, std::uint64_t seed)
      : plan_(plan), distribution_(distribution.name), data_(std::make_shared<Data>()) {
    data_->values = distribution.make(count, seed);
    data_->decoded.resize(count);
    data_->room.resize(room_bytes(count));
  }

  void add_all() {
    for (const bool encodes : {true, false}) {
      for (const Form form : {Form::leb128, Form::stop_bit, Form::fixed}) {
        for (const Path path : codec::paths()) add_own(form, path, encodes);
      }
      for (const CodecRival& rival : codec_rivals()) add_rival(rival, encodes);
    }
  }

 private:
  MicroRow row(std::string name, bool encodes) const {
    const std::string what = encodes ? "encode" : "decode";
    MicroRow row;
    row.group = fmt::format("{} {} {}", what, data_->values.size(), distribution_);
    row.name = std::move(name);
    row.subject.workload = what + " " + distribution_;
    row.subject.params["values"] = data_->values.size();
    row.items = static_cast<double>(data_->values.size());
    return row;
  }

  void add_own(Form form, Path path, bool encodes) {
    MicroRow row = this->row(fmt::format("{} {}", to_string(form), to_string(path)), encodes);
    const auto encode = [data = data_, form, path] {
      return static_cast<std::size_t>(codec::encode_array<std::uint32_t>(form, data->values, data->room.data(), path) -
                                      data->room.data());
    };
    // All ways write the same; decoders read a copy, since the room is what encoders write to.
    auto& bytes = data_->encoded[static_cast<std::size_t>(form)];
    if (bytes == nullptr) bytes = std::make_shared<const std::string>(data_->room.data(), encode());
    const auto decode = [data = data_, bytes = bytes, form, path] {
      return codec::decode_array<std::uint32_t>(form, *bytes, data->decoded, path).has_value();
    };
    finish(std::move(row), encodes, bytes, encode, decode);
  }

  void add_rival(const CodecRival& rival, bool encodes) {
    MicroRow row = this->row(std::string(rival.name), encodes);
    if (!rival.missing.empty()) {
      row.missing = rival.missing;
      plan_.rows.push_back(std::move(row));
      return;
    }
    if (!encodes && rival.decode == nullptr) return;
    const auto encode = [data = data_, &rival] { return rival.encode(data->values, data->room.data()); };
    const std::size_t size = encode();
    // With what streamvbyte may look at behind the end.
    const auto bytes = std::make_shared<const std::string>(std::string(data_->room.data(), size) + std::string(64, 0));
    const auto decode = [data = data_, bytes, size, &rival] {
      return rival.decode({bytes->data(), size}, data->decoded);
    };
    finish(std::move(row), encodes, std::make_shared<const std::string>(bytes->substr(0, size)), encode, decode);
  }

  template <class Encode, class Decode>
  void finish(MicroRow row, bool encodes, const std::shared_ptr<const std::string>& bytes, Encode encode,
              Decode decode) {
    row.bytes = static_cast<double>(bytes->size());
    if (encodes) {
      row.run = [encode] { static_cast<void>(encode()); };
      row.check = [data = data_, encode, bytes]() -> Result<void> {
        std::fill(data->room.begin(), data->room.end(), '\0');
        if (std::string_view(data->room.data(), encode()) == *bytes) return {};
        return fail(Code::corrupt, "it wrote other bytes the second time");
      };
    } else {
      row.run = [decode] { static_cast<void>(decode()); };
      row.check = [data = data_, decode]() -> Result<void> {
        std::fill(data->decoded.begin(), data->decoded.end(), 0);
        if (decode() && data->decoded == data->values) return {};
        return fail(Code::corrupt, "what was read is not what was written");
      };
    }
    plan_.rows.push_back(std::move(row));
  }

  MicroPlan& plan_;
  std::string distribution_;
  std::shared_ptr<Data> data_;
};

}  // namespace

/// For each value of its four distributions: itself, decoded, encoded by everyone, and the room to encode to.
Needs codec_needs(const Settings& settings) {
  constexpr std::uint64_t kBytesPerValue = 4 * (4 + 4 + 10 + 6 * 5);
  return {.memory_bytes = settings.items.value_or(kUsualValues) * kBytesPerValue};
}

Result<void> run_codec_suite(Bench& bench) {
  MicroPlan plan{.suite = "codec", .item = "value"};
  for (const std::uint64_t count : bench.sizes({1'024, 65'536, kUsualValues})) {
    for (const Distribution& distribution : kDistributions)
      CodecPlan(plan, distribution, count, bench.settings.seed).add_all();
  }
  plan.ratios = {
      {"protobuf", "ratio_to_protobuf"}, {"streamvbyte", "ratio_to_streamvbyte"}, {"memcpy", "ratio_to_memcpy"}};
  plan.notes = {"/NAME: how many times as fast as NAME, in the same repeat. +-%: half the range. Each row's values",
                "were compared once before it was measured. memcpy copies the 4 bytes of each value."};
  return run_micro(bench, plan);
}

}  // namespace kvingest::bench
