#include "http/load/job_file.hpp"

#include <set>

#include "base/posix.hpp"
#include "http/load/toml_reader.hpp"
#include "http/url.hpp"

namespace kvingest::fetch {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;

Result<void> read_job(const toml::table& table, const std::filesystem::path& dir, JobText& job) {
  TableReader reader(table, "job");
  std::string symbols_file;
  NamedValues vars;
  reader.text("source", &job.source);
  reader.texts("symbols", &job.symbols);
  reader.text("symbols_file", &symbols_file);
  reader.text("from", &job.from);
  reader.text("to", &job.to);
  reader.text("interval", &job.interval);
  reader.pairs("vars", &vars);
  reader.text("origin", &job.origin);
  reader.flag("refresh", &job.refresh);
  job.vars = {vars.begin(), vars.end()};
  if (!symbols_file.empty()) {
    auto more = read_symbols(dir / symbols_file);
    if (!more) reader.mistake("symbols_file", more.error().text);
    for (std::string& symbol : more.value_or(std::vector<std::string>())) job.symbols.push_back(std::move(symbol));
  }
  return reader.finish();
}

}  // namespace

Result<std::vector<std::string>> read_symbols(const std::filesystem::path& path) {
  const auto text = read_file(Posix::real(), path, kFileBytesMax);
  KV_TRY(text);
  std::vector<std::string> symbols;
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with('#')) symbols.emplace_back(line);
  }
  return symbols;
}

Result<std::vector<JobText>> read_jobs(const std::filesystem::path& path) {
  const auto text = read_file(Posix::real(), path, kFileBytesMax);
  KV_TRY(text);
  const auto table = parse_toml(*text);
  if (!table) return fail(table.error(), "{}", path.native());
  TableReader reader(*table, "");
  std::vector<JobText> jobs;
  if (const toml::array* const all = reader.tables("job")) {
    for (const toml::node& one : *all) reader.adopt(read_job(*one.as_table(), path.parent_path(), jobs.emplace_back()));
  }
  if (jobs.empty()) reader.mistake("job", "there is none: write [[job]]");
  const auto read = reader.finish();
  if (!read) return fail(read.error(), "{}", path.native());
  return jobs;
}

Result<Job> make_job(const JobText& text, Instant now) {
  auto preset = find_preset(text.source);
  KV_TRY(preset);
  Job job;
  job.preset = std::make_shared<const Preset>(*std::move(preset));
  job.source = text.source;
  std::set<std::string> known;
  for (const std::string& symbol : text.symbols) {
    if (symbol.empty()) return fail(Code::invalid_argument, "{}: an empty symbol", text.source);
    if (known.insert(symbol).second) job.symbols.push_back(symbol);
  }
  if (job.symbols.empty()) return fail(Code::invalid_argument, "{}: no symbols are named", text.source);
  job.vars = text.vars;
  if (!text.interval.empty()) job.vars["interval"] = text.interval;
  KV_TRY(complete_variables(job));
  const auto from = parse_day(text.from);
  if (!from) return fail(from.error(), "{}: from", text.source);
  job.wanted.from = *from * kNsPerDay;
  job.wanted.to = (day_of(now) + 1) * kNsPerDay;
  if (!text.to.empty()) {
    const auto to = parse_day(text.to);
    if (!to) return fail(to.error(), "{}: to", text.source);
    job.wanted.to = *to * kNsPerDay;
  }
  if (job.wanted.is_empty()) {
    return fail(Code::invalid_argument, "{}: from {} to {} is no span: the second day is not in it", text.source,
                format_day(*from), format_day(day_of(job.wanted.to)));
  }
  if (!text.origin.empty()) {
    const auto origin = http::origin_of(text.origin);
    if (!origin) return fail(origin.error(), "origin '{}'", text.origin);
    job.origin = *origin;
  }
  job.refresh = text.refresh;
  return job;
}

}  // namespace kvingest::fetch
