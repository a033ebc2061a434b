#include "http/load/preset_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "http/load/decode.hpp"
#include "http/load/json_tree.hpp"
#include "http/load/judge.hpp"

namespace kvingest::fetch {
namespace {

/// What an example comes to.
struct Met {
  Outcome outcome = Outcome::ok;
  std::string words;
  Decoded decoded;
};

Met meet(const Preset& preset, const Example& example) {
  Met met;
  const Judgement judgement = judge(preset, example.status, example.headers, example.body);
  met.outcome = judgement.outcome;
  met.words = judgement.message;
  if (met.outcome != Outcome::ok) return met;
  const Variable* const interval = preset.variable("interval");
  DecodeContext context;
  context.source = preset.name;
  context.symbol = example.symbol;
  context.interval = !example.interval.empty() ? example.interval
                     : interval != nullptr     ? interval->fallback.value_or("")
                                               : "";
  context.now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  met.decoded = decode(preset, example.body, context);
  met.outcome = met.decoded.outcome;
  met.words = met.decoded.problem;
  return met;
}

class Prover {
 public:
  explicit Prover(const Preset& preset) : preset_(preset) {}

  PresetProof run() {
    for (const Example& example : preset_.examples) {
      ++proof_.examples;
      check(example);
    }
    need("a good body", {Outcome::ok});
    need("an empty one", {Outcome::empty});
    need("an unknown symbol", {Outcome::no_such_symbol});
    need("a refusal for asking too much", {Outcome::rate_limited, Outcome::quota, Outcome::banned});
    return std::move(proof_);
  }

 private:
  template <class... Args>
  void fails(fmt::format_string<Args...> text, Args&&... args) {
    proof_.failures.push_back(
        fmt::format("example {}: {}", proof_.examples, fmt::format(text, std::forward<Args>(args)...)));
  }

  void check(const Example& example) {
    const Met met = meet(preset_, example);
    const Outcome wanted = example.is.value_or(Outcome::ok);
    shown_.push_back(met.outcome);
    if (met.outcome != wanted)
      return fails("is {} and should be {}: {}", to_string(met.outcome), to_string(wanted), met.words);
    if (met.outcome != Outcome::ok) return;
    const auto& records = met.decoded.records;
    if (example.rows && records.size() != *example.rows)
      fails("{} records instead of {}", records.size(), *example.rows);
    for (const auto& [record, count] : example.extra) {
      const auto found = std::ranges::find(met.decoded.extras, record, [](const auto& one) { return one.first; });
      const std::uint64_t there = found == met.decoded.extras.end() ? 0 : found->second.size();
      if (there != count) fails("{} records of {} instead of {}", there, record, count);
    }
    check_first(example, records.front());
  }

  void check_first(const Example& example, const Record& first) {
    JsonTree tree;
    if (tree.parse(first.json) != JsonTree::Parsed::whole) return fails("the record is no JSON: {}", first.json);
    for (const auto& [name, value] : example.first) {
      const JsonNode* const member = tree.member(*tree.root(), name);
      if (member == nullptr || member->text != value) fails("{} is not '{}' in {}", name, value, first.json);
    }
  }

  void need(std::string_view what, std::initializer_list<Outcome> outcomes) {
    const auto is_shown = [&](Outcome outcome) { return std::ranges::find(shown_, outcome) != shown_.end(); };
    if (std::ranges::any_of(outcomes, is_shown)) return;
    proof_.failures.push_back(fmt::format("no example shows {}", what));
  }

  const Preset& preset_;
  PresetProof proof_;
  std::vector<Outcome> shown_;
};

}  // namespace

PresetProof prove(const Preset& preset) {
  return Prover(preset).run();
}

}  // namespace kvingest::fetch
