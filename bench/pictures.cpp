#include "bench/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/statistics.hpp"

namespace kvingest::bench {
namespace {

/// Names of params that say how large the input was.
constexpr std::string_view kSizes[] = {"values", "nodes"};

bool is_main_figure(const Row& row) {
  return !row.values.empty() && (row.metric == "messages_per_second" || row.metric.starts_with("ns_per_"));
}

/// Drawn as a line already.
bool has_line(const Results& results, const Row& row) {
  return std::any_of(results.series.begin(), results.series.end(), [&](const Series& series) {
    return series.subject.suite == row.subject.suite && series.subject.workload == row.subject.workload;
  });
}

std::string title_of(const Row& row) {
  std::string title = row.subject.suite + ": " + row.subject.workload;
  // Levels are compared in ingest, where they are part of the bar's name; elsewhere each has its own picture.
  if (row.subject.suite == "ingest")
    title = "ingest";
  else if (!row.subject.durability.empty())
    title += " at " + row.subject.durability;
  for (const auto& [name, value] : row.subject.params) {
    if (row.subject.suite != "ingest" || name == "batch") title += fmt::format(", {} {}", value, name);
  }
  return title;
}

std::string label_of(const Row& row) {
  if (row.subject.suite == "ingest")
    return row.subject.store.empty() ? row.subject.workload
                                     : fmt::format("{} {} {}", row.subject.store, row.subject.durability,
                                                   row.subject.workload == "line" ? "" : row.subject.workload);
  return row.subject.variant.empty() ? row.subject.store : row.subject.variant;
}

Picture& picture_named(std::vector<Picture>& pictures, const std::string& suite, const std::string& title,
                       const std::string& unit) {
  const auto found = std::find_if(pictures.begin(), pictures.end(), [&](const Picture& picture) {
    return picture.title == title && picture.unit == unit;
  });
  if (found != pictures.end()) return *found;
  return pictures.emplace_back(Picture{.suite = suite, .title = title, .unit = unit});
}

void add_bars(const Results& results, std::vector<Picture>& pictures) {
  for (const Row& row : results.rows) {
    if (!is_main_figure(row) || has_line(results, row)) continue;
    std::string unit = row.unit == "1/s" ? "a second" : row.unit + " " + row.metric.substr(3);
    std::replace(unit.begin(), unit.end(), '_', ' ');
    const auto [least, most] = std::minmax_element(row.values.begin(), row.values.end());
    picture_named(pictures, row.subject.suite, title_of(row), unit)
        .bars.push_back({label_of(row), median(row.values), *least, *most});
  }
  for (Picture& picture : pictures) {
    // Where one bar is a hundred times another a linear picture shows one only.
    const auto [least, most] = std::minmax_element(picture.bars.begin(), picture.bars.end(),
                                                   [](const Bar& a, const Bar& b) { return a.value < b.value; });
    picture.log_y = least->value > 0 && most->value > 30 * least->value;
  }
}

void add_series(const Results& results, std::vector<Picture>& pictures) {
  for (const Series& series : results.series) {
    Line line{series.line, {}};
    for (const auto& [x, y] : series.points) {
      const bool can_be_drawn = (!series.log_x || x > 0) && (!series.log_y || y > 0);
      if (can_be_drawn) line.points.emplace_back(x, y);
    }
    if (line.points.empty()) continue;
    Picture& picture = picture_named(pictures, series.subject.suite, series.picture, series.y);
    picture.x = series.x;
    picture.log_x = series.log_x;
    picture.log_y = series.log_y;
    picture.lines.push_back(std::move(line));
  }
}

/// Rates by size of input, of what was measured at several.
void add_sizes(const Results& results, std::vector<Picture>& pictures) {
  std::vector<Picture> all;
  for (const Row& row : results.rows) {
    if (row.values.empty() || !row.metric.starts_with("ns_per_")) continue;
    for (const std::string_view name : kSizes) {
      const auto size = row.subject.params.find(std::string(name));
      if (size == row.subject.params.end()) continue;
      Picture& picture =
          picture_named(all, row.subject.suite, fmt::format("{}: {} by size", row.subject.suite, row.subject.workload),
                        fmt::format("million {} a second", name));
      picture.x = name;
      picture.log_x = true;
      auto line = std::find_if(picture.lines.begin(), picture.lines.end(),
                               [&](const Line& one) { return one.label == row.subject.variant; });
      if (line == picture.lines.end()) line = picture.lines.insert(line, {row.subject.variant, {}});
      line->points.emplace_back(static_cast<double>(size->second), 1e3 / median(row.values));
    }
  }
  for (Picture& picture : all) {
    const bool has_sizes = std::any_of(picture.lines.begin(), picture.lines.end(),
                                       [](const Line& line) { return line.points.size() > 1; });
    if (has_sizes) pictures.push_back(std::move(picture));
  }
}

}  // namespace

std::vector<Picture> pictures_of(const Results& results) {
  std::vector<Picture> pictures;
  add_bars(results, pictures);
  add_series(results, pictures);
  add_sizes(results, pictures);
  std::map<std::string, std::size_t> first;  // Suites in the order in which they were run.
  for (const Row& row : results.rows) first.emplace(row.subject.suite, first.size());
  std::stable_sort(pictures.begin(), pictures.end(),
                   [&](const Picture& a, const Picture& b) { return first[a.suite] < first[b.suite]; });
  return pictures;
}

}  // namespace kvingest::bench
