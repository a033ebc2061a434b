#include "bench/results.hpp"

#include <fmt/chrono.h>

#include <chrono>

#include "base/cli.hpp"
#include "base/json_writer.hpp"
#include "bench/statistics.hpp"

namespace kvingest::bench {
namespace {

void text_or_null(JsonWriter& json, std::string_view name, const std::string& text) {
  json.key(name);
  if (text.empty())
    json.null();
  else
    json.value(text);
}

/// A field of a line of csv: in quotes where it holds what ends one.
std::string csv_field(const std::string& field) {
  if (field.find_first_of(",\"\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) text.append(c == '"' ? 2 : 1, c);
  return text + "\"";
}

void write_subject(JsonWriter& json, const Subject& subject) {
  json.field("suite", subject.suite).field("workload", subject.workload);
  text_or_null(json, "store", subject.store);
  text_or_null(json, "durability", subject.durability);
  text_or_null(json, "level", subject.level);
  json.key("params").begin_object();
  for (const auto& [name, value] : subject.params) json.field(name, value);
  if (!subject.variant.empty()) json.field("variant", subject.variant);
  json.end_object();
}

void write_row(JsonWriter& json, const Row& row) {
  json.begin_object();
  write_subject(json, row.subject);
  json.field("metric", row.metric).field("unit", row.unit).key("value");
  if (row.values.empty())
    json.null();
  else
    json.value(median(row.values));
  json.field("repeats", row.values.size()).field("spread", spread(row.values)).key("values").begin_array();
  for (const double value : row.values) json.value(value);
  json.end_array();
  if (!row.error.empty()) json.field("error", row.error);
  if (!row.missing.empty()) json.field("missing", row.missing);
  json.end_object();
}

void write_series(JsonWriter& json, const Series& series) {
  json.begin_object();
  write_subject(json, series.subject);
  json.field("picture", series.picture).field("line", series.line).field("x", series.x).field("y", series.y);
  json.field("log_x", series.log_x).field("log_y", series.log_y).key("points").begin_array();
  for (const auto& [x, y] : series.points) json.begin_array().value(x).value(y).end_array();
  json.end_array().end_object();
}

}  // namespace

std::string Results::json() const {
  JsonWriter writer;
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  writer.begin_object()
      .field("schema", kResultsSchema)
      .field("version", cli::program_version())
      .field("command", command);
  writer.field("time", time.empty() ? fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)) : time);
  writer.field("seed", seed);
  writer.key("machine");
  write_machine(writer, machine);
  writer.key("probe");
  write_probe(writer, probe);
  writer.key("results").begin_array();
  for (const Row& row : rows) write_row(writer, row);
  writer.end_array().key("series").begin_array();
  for (const Series& one : series) write_series(writer, one);
  writer.end_array().key("finished").begin_array();
  for (const std::string& name : finished) writer.value(name);
  writer.end_array().field("tables", tables).end_object();
  return writer.text() + "\n";
}

std::string Results::csv() const {
  std::string text = "suite,workload,store,durability,level,params,variant,metric,unit,repeat,value\n";
  for (const Row& row : rows) {
    const Subject& s = row.subject;
    std::string params;
    for (const auto& [name, value] : s.params) params += fmt::format("{}{}={}", params.empty() ? "" : " ", name, value);
    const std::string what =
        fmt::format("{},{},{},{},{},{},{},{},{}", csv_field(s.suite), csv_field(s.workload), csv_field(s.store),
                    s.durability, s.level, csv_field(params), csv_field(s.variant), csv_field(row.metric), row.unit);
    for (std::size_t i = 0; i < row.values.size(); ++i) text += fmt::format("{},{},{}\n", what, i + 1, row.values[i]);
  }
  return text;
}

}  // namespace kvingest::bench
