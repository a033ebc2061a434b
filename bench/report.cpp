#include "bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "bench/child.hpp"
#include "bench/statistics.hpp"

namespace kvingest::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPlotTime{30};

/// A text that HTML shows as it is.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

bool is_main_figure(const Row& row) {
  return !row.values.empty() && (row.metric == "messages_per_second" || row.metric.starts_with("ns_per_"));
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
    return row.subject.store.empty() ? row.subject.workload : row.subject.store + " " + row.subject.durability;
  return row.subject.variant;
}

/// gnuplot reads `"` as the end of a label and `_` and `^` as layout.
std::string plain_label(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  return text;
}

Result<void> write_script(const fs::path& path, const Picture& picture, const fs::path& svg) {
  std::ofstream out(path);
  out << "set terminal svg size 900,420 dynamic font 'sans-serif,13' noenhanced\n"
      << "set output '" << svg.native() << "'\n"
      << "unset key\nset style fill solid 0.8\nset boxwidth 0.6\nset grid ytics\nset xtics rotate by -35 nomirror\n"
      << "set ylabel '" << picture.unit << "'\nset border 3\n";
  // Where one bar is a hundred times another a linear picture shows one only.
  const auto [least, most] = std::minmax_element(picture.bars.begin(), picture.bars.end(),
                                                 [](const Bar& a, const Bar& b) { return a.value < b.value; });
  out << (most->value > 30 * least->value ? "set logscale y\n" : "set yrange [0:*]\n");
  out << "plot '-' using 0:2:3:4:xtic(1) with boxerrorbars linecolor rgb '#3b6ea8'\n";
  for (const Bar& bar : picture.bars)
    out << '"' << plain_label(bar.label) << "\" " << bar.value << ' ' << bar.least << ' ' << bar.most << '\n';
  out << "e\n";
  out.flush();
  if (!out) return fail(Code::io_error, "write {}", path.native());
  return {};
}

Result<std::string> draw(const Picture& picture, const fs::path& gnuplot, const fs::path& work_dir) {
  const fs::path script = work_dir / "plot.gp";
  const fs::path svg = work_dir / "plot.svg";
  KV_TRY(write_script(script, picture, svg));
  auto child = Child::start({gnuplot.string(), script.string()}, work_dir, "gnuplot");
  KV_TRY(child);
  auto ended = child->wait(kPlotTime);
  KV_TRY(ended);
  if (!*ended) return fail(Code::io_error, "gnuplot did not end in time");
  KV_TRY(child->usage());
  std::ifstream in(svg, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::size_t begin = text.find("<svg");
  if (begin == std::string::npos) return fail(Code::io_error, "gnuplot drew nothing for '{}'", picture.title);
  return text.substr(begin);
}

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.45 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 2rem 0; }
svg { width: 100%; height: auto; }
figcaption { font-weight: bold; }
pre { overflow-x: auto; font-size: 12px; line-height: 1.35; }
table { border-collapse: collapse; font-size: 13px; }
td, th { padding: .1rem .7rem; text-align: right; }
td:first-child, th:first-child { text-align: left; }
@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); } }
)";

std::string table_of(const Picture& picture) {
  std::string html =
      fmt::format("<table><tr><th></th><th>median, {}</th><th>least</th><th>most</th></tr>\n", escaped(picture.unit));
  for (const Bar& bar : picture.bars)
    html += fmt::format("<tr><td>{}</td><td>{:.5g}</td><td>{:.5g}</td><td>{:.5g}</td></tr>\n", escaped(bar.label),
                        bar.value, bar.least, bar.most);
  return html + "</table>\n";
}

}  // namespace

std::vector<Picture> pictures_of(const Results& results) {
  std::vector<Picture> pictures;
  for (const Row& row : results.rows) {
    if (!is_main_figure(row)) continue;
    const std::string title = title_of(row);
    auto found = std::find_if(pictures.begin(), pictures.end(), [&](const Picture& picture) {
      return picture.title == title && picture.unit == row.unit;
    });
    if (found == pictures.end()) found = pictures.insert(pictures.end(), {title, row.unit, {}});
    const auto [least, most] = std::minmax_element(row.values.begin(), row.values.end());
    found->bars.push_back({label_of(row), median(row.values), *least, *most});
  }
  return pictures;
}

std::optional<fs::path> find_gnuplot() {
  for (const char* path : {"/usr/bin/gnuplot", "/usr/local/bin/gnuplot"}) {
    if (fs::exists(path)) return path;
  }
  return std::nullopt;
}

Result<std::string> report_page(const Results& results, const std::string& tables, const fs::path& gnuplot,
                                const fs::path& work_dir) {
  const Machine& machine = results.machine;
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>kvbench</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<style>{}</style></head>\n<body>\n<h1>kvbench</h1>\n"
      "<p><code>{}</code></p>\n<p>{}; {}; {}; {}; load {:.1f} at the start</p>\n<pre>{}</pre>\n",
      kStyle, escaped(results.command), escaped(machine.cpu), escaped(machine.system), escaped(machine.kernel),
      escaped(machine.filesystem), machine.load, escaped(probe_text(results.probe)));
  for (const Picture& picture : pictures_of(results)) {
    auto svg = draw(picture, gnuplot, work_dir);
    KV_TRY(svg);
    page += fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}\n{}</figure>\n", escaped(picture.title), *svg,
                        table_of(picture));
  }
  return page + fmt::format("<h2>Tables</h2>\n<pre>{}</pre>\n</body>\n</html>\n", escaped(tables));
}

}  // namespace kvingest::bench
