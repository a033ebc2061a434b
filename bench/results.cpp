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

void write_row(JsonWriter& json, const Row& row) {
  const Subject& subject = row.subject;
  json.begin_object().field("suite", subject.suite).field("workload", subject.workload);
  text_or_null(json, "store", subject.store);
  text_or_null(json, "durability", subject.durability);
  text_or_null(json, "level", subject.level);
  json.key("params").begin_object();
  for (const auto& [name, value] : subject.params) json.field(name, value);
  if (!subject.variant.empty()) json.field("variant", subject.variant);
  json.end_object().field("metric", row.metric).field("unit", row.unit).key("value");
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

}  // namespace

std::string Results::json() const {
  JsonWriter writer;
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  writer.begin_object().field("schema", 1).field("version", cli::program_version()).field("command", command);
  writer.field("time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))).field("seed", seed);
  writer.key("machine");
  write_machine(writer, machine);
  writer.key("probe");
  write_probe(writer, probe);
  writer.key("results").begin_array();
  for (const Row& row : rows) write_row(writer, row);
  writer.end_array().end_object();
  return writer.text() + "\n";
}

}  // namespace kvingest::bench
