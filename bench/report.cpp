#include "bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

#include "bench/child.hpp"
#include "bench/pictures.hpp"

namespace kvingest::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPlotTime{120};

/// Colours that people with the usual kinds of colour blindness tell apart, on light and, turned around, on dark.
constexpr std::string_view kColours[] = {"#3b6ea8", "#c1581c", "#2f8f5b", "#8a4fa3",
                                         "#b8860b", "#5a5a5a", "#c43b6b", "#3a9aa8"};
constexpr std::string_view kDashes[] = {"1", "'-'", "'.'"};

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

/// gnuplot reads `"` and `\` in its own way.
std::string plain_label(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\\', '/');
  return text;
}

void write_bars(std::ostream& out, const Picture& picture) {
  out << "unset key\nset style fill solid 0.8\nset xtics rotate by -35 nomirror\n"
      << "set xrange [-0.7:" << static_cast<double>(picture.bars.size()) - 0.3 << "]\n"
      << "plot '-' using 0:2:3:4:(0.6):xtic(1) with boxerrorbars linecolor rgb '" << kColours[0] << "'\n";
  for (const Bar& bar : picture.bars)
    out << '"' << plain_label(bar.label) << "\" " << bar.value << ' ' << bar.least << ' ' << bar.most << '\n';
  out << "e\n";
}

void write_lines(std::ostream& out, const Picture& picture) {
  out << "set key outside right top\nset xlabel \"" << plain_label(picture.x) << "\"\n";
  for (std::size_t i = 0; i < picture.lines.size(); ++i) {
    // Where colours come again the lines are broken, and the points have another form.
    const std::size_t round = i / std::size(kColours);
    out << (i == 0 ? "plot " : ", ") << "'-' using 1:2 with linespoints linewidth 1.6 pointsize 0.5 pointtype "
        << 7 + 2 * round % 8 << " dashtype " << kDashes[round % std::size(kDashes)] << " linecolor rgb '"
        << kColours[i % std::size(kColours)] << "' title \"" << plain_label(picture.lines[i].label) << '"';
  }
  out << '\n';
  for (const Line& line : picture.lines) {
    for (const auto& [x, y] : line.points) out << x << ' ' << y << '\n';
    out << "e\n";
  }
}

fs::path svg_of(const fs::path& work_dir, std::size_t number) {
  return work_dir / fmt::format("plot{}.svg", number);
}

/// One script for all: starting gnuplot takes longer than drawing.
Result<void> write_script(const fs::path& path, const std::vector<Picture>& pictures, const fs::path& work_dir) {
  std::ofstream out(path);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const Picture& picture = pictures[i];
    out << "reset\nset terminal svg size 900," << (picture.lines.empty() ? 420 : 460) << " dynamic name 'plot" << i
        << "' font 'sans-serif,13' noenhanced\nset output '" << svg_of(work_dir, i).native() << "'\n"
        << "set grid ytics\nset border 3\nset xtics nomirror\nset ytics nomirror\nset ylabel \""
        << plain_label(picture.unit) << "\"\n"
        << (picture.log_x ? "set logscale x\n" : "") << (picture.log_y ? "set logscale y\n" : "set yrange [0:*]\n");
    picture.lines.empty() ? write_bars(out, picture) : write_lines(out, picture);
  }
  out << "set output\n";
  out.flush();
  if (!out) return fail(Code::io_error, "write {}", path.native());
  return {};
}

Result<std::vector<std::string>> draw(const std::vector<Picture>& pictures, const fs::path& gnuplot,
                                      const fs::path& work_dir) {
  const fs::path script = work_dir / "plot.gp";
  KV_TRY(write_script(script, pictures, work_dir));
  auto child = Child::start({gnuplot.string(), script.string()}, work_dir, "gnuplot");
  KV_TRY(child);
  auto ended = child->wait(kPlotTime);
  KV_TRY(ended);
  if (!*ended) return fail(Code::io_error, "gnuplot did not end in time");
  KV_TRY(child->usage());
  std::vector<std::string> drawn;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    std::ifstream in(svg_of(work_dir, i), std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    const std::size_t begin = text.find("<svg");
    if (begin == std::string::npos) return fail(Code::io_error, "gnuplot drew nothing for '{}'", pictures[i].title);
    drawn.push_back(text.substr(begin));
  }
  return drawn;
}

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.45 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 2.5rem 0; }
svg { width: 100%; height: auto; }
figcaption { font-weight: bold; }
pre { overflow-x: auto; font-size: 12px; line-height: 1.35; }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; }
td, th { padding: .1rem .7rem; text-align: right; }
td:first-child, th:first-child { text-align: left; white-space: nowrap; }
@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); } }
)";

std::string table_of_bars(const Picture& picture) {
  std::string html =
      fmt::format("<table><tr><th></th><th>median, {}</th><th>least</th><th>most</th></tr>\n", escaped(picture.unit));
  for (const Bar& bar : picture.bars)
    html += fmt::format("<tr><td>{}</td><td>{:.5g}</td><td>{:.5g}</td><td>{:.5g}</td></tr>\n", escaped(bar.label),
                        bar.value, bar.least, bar.most);
  return html + "</table>\n";
}

/// A row for each line, a column for each x that any of them has.
std::string table_of_lines(const Picture& picture) {
  std::vector<double> columns;
  for (const Line& line : picture.lines) {
    for (const auto& [x, y] : line.points) columns.push_back(x);
  }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  std::string html = fmt::format("<table><tr><th>{}</th>", escaped(picture.x));
  for (const double x : columns) html += fmt::format("<th>{:.5g}</th>", x);
  html += "</tr>\n";
  for (const Line& line : picture.lines) {
    html += fmt::format("<tr><td>{}</td>", escaped(line.label));
    for (const double x : columns) {
      const auto found =
          std::find_if(line.points.begin(), line.points.end(), [&](const auto& point) { return point.first == x; });
      html += found == line.points.end() ? "<td></td>" : fmt::format("<td>{:.5g}</td>", found->second);
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

std::optional<fs::path> find_gnuplot() {
  for (const char* path : {"/usr/bin/gnuplot", "/usr/local/bin/gnuplot"}) {
    if (fs::exists(path)) return path;
  }
  return std::nullopt;
}

std::string command_of_suite(std::string_view command, std::string_view suite) {
  const std::vector<std::string> words = words_of(command);
  const bool has_command = words.size() > 1 && !words[1].starts_with('-');
  // What `quick` runs is smaller than the suites by themselves.
  const bool is_smaller = !has_command || words[1] == "quick" || command.find("quick") != std::string_view::npos;
  if (is_smaller) return std::string(command);
  std::string own = fmt::format("kvbench {}", suite);
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "--suite")
      ++i;
    else if (!words[i].starts_with("--suite="))
      own.append(1, ' ').append(words[i]);
  }
  return own;
}

Result<std::string> report_page(const Results& results, const fs::path& gnuplot, const fs::path& work_dir) {
  const Machine& machine = results.machine;
  const std::vector<Picture> pictures = pictures_of(results);
  auto drawn = draw(pictures, gnuplot, work_dir);
  KV_TRY(drawn);
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>kvbench</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<style>{}</style></head>\n<body>\n<h1>kvbench</h1>\n"
      "<p><code>{}</code></p>\n<p>{}; {}; {}; {}; load {:.1f} at the start; {}</p>\n<pre>{}</pre>\n",
      kStyle, escaped(results.command), escaped(machine.cpu), escaped(machine.system), escaped(machine.kernel),
      escaped(machine.filesystem), machine.load, escaped(results.time), escaped(probe_text(results.probe)));
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const Picture& picture = pictures[i];
    if (i == 0 || pictures[i - 1].suite != picture.suite) page += fmt::format("<h2>{}</h2>\n", escaped(picture.suite));
    page += fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}\n{}<p><code>{}</code></p>\n</figure>\n",
                        escaped(picture.title), (*drawn)[i],
                        picture.lines.empty() ? table_of_bars(picture) : table_of_lines(picture),
                        escaped(command_of_suite(results.command, picture.suite)));
  }
  return page + fmt::format("<h2>Tables</h2>\n<pre>{}</pre>\n</body>\n</html>\n", escaped(results.tables));
}

}  // namespace kvingest::bench
