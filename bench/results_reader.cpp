// results_reader.cpp -- results.json read back, for reports, comparisons and runs that are gone on with.
#include <simdjson.h>

#include "bench/results.hpp"

namespace kvingest::bench {
namespace {

namespace dom = simdjson::dom;

/// A text; empty where it is null or not there.
std::string text_in(dom::element json, std::string_view name) {
  std::string_view text;
  return json[name].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

double number_in(dom::element json, std::string_view name) {
  double number = 0;
  return json[name].get(number) == simdjson::SUCCESS ? number : 0;
}

bool truth_in(dom::element json, std::string_view name) {
  bool truth = false;
  return json[name].get(truth) == simdjson::SUCCESS && truth;
}

/// The elements of an array; none where there is no array.
std::vector<dom::element> items_in(dom::element json, std::string_view name) {
  dom::array array;
  if (json[name].get(array) != simdjson::SUCCESS) return {};
  return {array.begin(), array.end()};
}

Subject read_subject(dom::element json) {
  Subject subject{.suite = text_in(json, "suite"),
                  .workload = text_in(json, "workload"),
                  .store = text_in(json, "store"),
                  .durability = text_in(json, "durability"),
                  .level = text_in(json, "level"),
                  .params = {}};
  dom::object params;
  if (json["params"].get(params) != simdjson::SUCCESS) return subject;
  for (const auto& [name, value] : params) {
    std::uint64_t number = 0;
    std::string_view text;
    if (value.get(number) == simdjson::SUCCESS)
      subject.params[std::string(name)] = number;
    else if (value.get(text) == simdjson::SUCCESS)
      subject.variant = text;
  }
  return subject;
}

Row read_row(dom::element json) {
  Row row{.subject = read_subject(json),
          .metric = text_in(json, "metric"),
          .unit = text_in(json, "unit"),
          .values = {},
          .error = text_in(json, "error"),
          .missing = text_in(json, "missing")};
  for (const dom::element value : items_in(json, "values")) {
    double number = 0;
    if (value.get(number) == simdjson::SUCCESS) row.values.push_back(number);
  }
  return row;
}

Series read_series(dom::element json) {
  Series series{.subject = read_subject(json),
                .picture = text_in(json, "picture"),
                .line = text_in(json, "line"),
                .x = text_in(json, "x"),
                .y = text_in(json, "y"),
                .log_x = truth_in(json, "log_x"),
                .log_y = truth_in(json, "log_y"),
                .points = {}};
  for (const dom::element point : items_in(json, "points")) {
    dom::array pair;
    double x = 0;
    double y = 0;
    const bool good = point.get(pair) == simdjson::SUCCESS && pair.at(0).get(x) == simdjson::SUCCESS &&
                      pair.at(1).get(y) == simdjson::SUCCESS;
    if (good) series.points.emplace_back(x, y);
  }
  return series;
}

Machine read_machine(dom::element json) {
  Machine machine;
  machine.cpu = text_in(json, "cpu");
  machine.cpus = text_in(json, "cpus");
  machine.memory_bytes = static_cast<std::uint64_t>(number_in(json, "memory_bytes"));
  machine.kernel = text_in(json, "kernel");
  machine.system = text_in(json, "system");
  machine.compiler = text_in(json, "compiler");
  machine.load = number_in(json, "load");
  machine.filesystem = text_in(json, "filesystem");
  return machine;
}

ProbeFigures read_probe(dom::element json) {
  ProbeFigures probe;
  probe.timer_ns = number_in(json, "timer_ns");
  probe.syscall_ns = number_in(json, "syscall_ns");
  probe.thread_us = number_in(json, "thread_us");
  probe.memcpy_gb_s = number_in(json, "memcpy_gb_s");
  probe.loopback_us = number_in(json, "loopback_us");
  probe.sync_4k_us = number_in(json, "sync_4k_us");
  probe.sync_4k_p99_us = number_in(json, "sync_4k_p99_us");
  probe.sync_1m_mb_s = number_in(json, "sync_1m_mb_s");
  return probe;
}

}  // namespace

Result<Results> read_results(const std::filesystem::path& path) {
  dom::parser parser;
  dom::element json;
  if (const auto error = parser.load(path.native()).get(json))
    return fail(Code::io_error, "{}: {}", path.native(), simdjson::error_message(error));
  dom::array rows;
  dom::element machine;
  dom::element probe;
  const bool is_ours = json["results"].get(rows) == simdjson::SUCCESS &&
                       json["machine"].get(machine) == simdjson::SUCCESS &&
                       json["probe"].get(probe) == simdjson::SUCCESS;
  if (!is_ours) return fail(Code::corrupt, "{}: no results of kvbench", path.native());
  if (number_in(json, "schema") != kResultsSchema)
    return fail(Code::corrupt, "{}: results of another schema", path.native());
  Results results;
  results.command = text_in(json, "command");
  results.time = text_in(json, "time");
  results.seed = static_cast<std::uint64_t>(number_in(json, "seed"));
  results.machine = read_machine(machine);
  results.probe = read_probe(probe);
  for (const dom::element row : rows) results.rows.push_back(read_row(row));
  for (const dom::element series : items_in(json, "series")) results.series.push_back(read_series(series));
  for (const dom::element name : items_in(json, "finished")) {
    std::string_view text;
    if (name.get(text) == simdjson::SUCCESS) results.finished.emplace_back(text);
  }
  results.tables = text_in(json, "tables");
  return results;
}

}  // namespace kvingest::bench
