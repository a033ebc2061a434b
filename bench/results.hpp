// results.hpp -- what a run of kvbench measured, and results.json, which holds it:
//
//   {"schema":1,"version":..,"command":..,"time":..,"seed":..,"machine":{..},"probe":{..},
//    "results":[{"suite","workload","store","durability","level","params":{..},"metric","unit","value","repeats",
//                "spread","values":[..]}]}
//
// `store`, `durability` and `level` are null in rows without a store; `value` is null where the runs failed, and
// `error` says why, or where this build cannot run it, and `missing` says what it lacks. `params` are numbers, and the
// text `variant` where there are several ways of doing the same. `values` are those of the repeats, `spread` is
// (largest - smallest) / median.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/machine.hpp"
#include "bench/probe.hpp"
#include "kvingest/result.hpp"

namespace kvingest::bench {

/// What was run, apart from how often.
struct Subject {
  std::string suite;
  std::string workload;
  std::string store;       ///< Empty: none.
  std::string durability;  ///< As asked for.
  std::string level;       ///< As given, which may be stronger.
  std::map<std::string, std::uint64_t> params;
  std::string variant = {};  ///< Which way of doing it: "leb128 simd". In the results one of the params.
};

/// One figure of a subject.
struct Row {
  Subject subject;
  std::string metric;
  std::string unit;
  std::vector<double> values;  ///< One for each repeat; empty: failed.
  std::string error;
  std::string missing = {};  ///< What this build lacks for it: no failure.
};

struct Results {
  std::string command;
  std::uint64_t seed = 0;
  Machine machine;
  ProbeFigures probe;
  std::vector<Row> rows;

  void add(const Subject& subject, std::string metric, std::string unit, std::vector<double> values) {
    rows.push_back({subject, std::move(metric), std::move(unit), std::move(values), {}});
  }
  void add_failure(const Subject& subject, std::string metric, std::string unit, std::string error) {
    rows.push_back({subject, std::move(metric), std::move(unit), {}, std::move(error)});
  }
  void add_missing(const Subject& subject, std::string metric, std::string unit, std::string missing) {
    rows.push_back({subject, std::move(metric), std::move(unit), {}, {}, std::move(missing)});
  }

  [[nodiscard]] std::string json() const;
};

}  // namespace kvingest::bench
