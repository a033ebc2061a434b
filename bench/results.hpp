// results.hpp -- what a run of kvbench measured, and results.json, which holds it:
//
//   {"schema":1,"version":..,"command":..,"time":..,"seed":..,"machine":{..},"probe":{..},
//    "results":[{"suite","workload","store","durability","level","params":{..},"metric","unit","value","repeats",
//                "spread","values":[..]}],
//    "finished":["ingest",..],"tables":"..",
//    "series":[{"suite",..,"params":{..},"picture","line","x","y","log_x","log_y","points":[[x,y],..]}]}
//
// `store`, `durability` and `level` are null in rows without a store; `value` is null where the runs failed, and
// `error` says why, or where this build cannot run it, and `missing` says what it lacks. `params` are numbers, and the
// text `variant` where there are several ways of doing the same. `values` are those of the repeats, `spread` is
// (largest - smallest) / median. A series is a line of a picture: those of one `picture` are drawn together.
// Rows of a workload that has a series are in that picture and have no bars.
// `finished` names the suites whose results are complete, `tables` is the text that the terminal gets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
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

/// A line of a picture: latency by percentile or by load, a rate by time or by size.
struct Series {
  Subject subject;
  std::string picture;  ///< Its title; the lines with the same one are drawn together.
  std::string line;     ///< Its name in there.
  std::string x;        ///< What the axes show, with their units.
  std::string y;
  bool log_x = false;
  bool log_y = false;
  std::vector<std::pair<double, double>> points;
};

inline constexpr int kResultsSchema = 1;

struct Results {
  std::string command;
  std::string time = {};  ///< When it ended; empty: now.
  std::uint64_t seed = 0;
  Machine machine;
  ProbeFigures probe;
  std::vector<Row> rows;
  std::vector<Series> series = {};
  std::vector<std::string> finished = {};  ///< Names of suites.
  std::string tables = {};                 ///< Of those, for the terminal.

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
  /// The same as lines: each value of each repeat with what was run.
  [[nodiscard]] std::string csv() const;
};

/// What results.json at `path` holds. Fails with: io_error, corrupt (it is no such file, or of another schema).
[[nodiscard]] Result<Results> read_results(const std::filesystem::path& path);

}  // namespace kvingest::bench
