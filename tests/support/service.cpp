#include "tests/support/service.hpp"

#include <fmt/format.h>

#include <charconv>
#include <sstream>
#include <stdexcept>

namespace kvingest::test {
namespace {

std::uint64_t parse_number(std::string_view text) {
  std::uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::runtime_error(fmt::format("not a number: \"{}\"", text));
  return parsed;
}

std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
      continue;
    }
    switch (++i < text.size() ? text[i] : '\0') {
      case 'x': {
        unsigned byte = 0;
        std::from_chars(text.data() + i + 1, text.data() + std::min(i + 3, text.size()), byte, 16);
        plain += static_cast<char>(byte);
        i += 2;
        break;
      }
      case 't':
        plain += '\t';
        break;
      case 'n':
        plain += '\n';
        break;
      case 'r':
        plain += '\r';
        break;
      case '\\':
        plain += '\\';
        break;
      default:
        throw std::runtime_error(fmt::format("unknown escape in \"{}\"", text));
    }
  }
  return plain;
}

std::string run_kvq(std::vector<std::string> args) {
  args.insert(args.begin(), program("kvq"));
  const Finished done = run(args);
  if (done.exit.code != 0)
    throw std::runtime_error(fmt::format("kvq {}: exit {}: {}", args[1], done.exit.code, done.err));
  return done.out;
}

}  // namespace

Answer Answer::parse(std::string_view line) {
  Answer answer{std::string(line), {}, {}};
  if (!line.starts_with("!kv ")) throw std::runtime_error(fmt::format("not an answer: \"{}\"", line));
  std::size_t at = 4;
  while (at < line.size()) {
    const std::size_t end = std::min(line.find_first_of(" =", at), line.size());
    const std::string name(line.substr(at, end - at));
    at = end + 1;
    if (end == line.size() || line[end] == ' ') {
      (answer.word.empty() ? answer.word : answer.fields[name]) = name;
      continue;
    }
    std::string& value = answer.fields[name];
    const bool quoted = at < line.size() && line[at] == '"';
    for (at += quoted ? 1 : 0; at < line.size() && line[at] != (quoted ? '"' : ' '); ++at) {
      if (quoted && line[at] == '\\') ++at;
      if (at < line.size()) value += line[at];
    }
    at += quoted ? 2 : 1;
  }
  return answer;
}

std::string Answer::text(std::string_view name) const {
  const auto found = fields.find(std::string(name));
  return found == fields.end() ? std::string() : found->second;
}

std::uint64_t Answer::number(std::string_view name) const {
  return parse_number(text(name));
}

std::vector<std::string> Service::command_line(const Options& options) const {
  std::vector<std::string> words = options.wrapper;
  for (const std::string& word :
       {program("kvingest"), std::string("--store"), options.store, std::string("--dir"), dir_.native(),
        std::string("--port-file"), (temp_ / "ports").native(), std::string("--json"), std::string("--quiet")})
    words.push_back(word);
  if (options.listen) words.insert(words.end(), {"--listen", "127.0.0.1:0"});
  words.insert(words.end(), options.args.begin(), options.args.end());
  return words;
}

Service::Service(const Options& options)
    : dir_(options.dir.empty() ? temp_ / "db" : options.dir),
      process_(command_line(options), options.process),
      ports_(wait_for_ports(process_, temp_ / "ports")) {}

std::map<std::string, std::string> wait_for_ports(Process& process, const std::filesystem::path& port_file) {
  const bool there = eventually([&] { return std::filesystem::exists(port_file) || !process.running(); });
  if (!there || !std::filesystem::exists(port_file))
    throw std::runtime_error(fmt::format("the program did not become ready; its stderr:\n{}", process.err_text()));
  std::map<std::string, std::string> ports;
  std::istringstream text(file_text(port_file));
  for (std::string name, address; text >> name >> address;) ports[name] = address;
  return ports;
}

std::string Service::http_answer(std::string_view path) const {
  TcpClient peer = connect("http");
  peer.send_all(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", path, address("http")));
  return peer.read_to_end();
}

std::optional<Answer> Service::try_sync(std::string_view data, std::string_view tag) const {
  TcpClient peer = connect();
  // Who is turned away may be so before all is sent; the answer says it.
  static_cast<void>(peer.send_some(fmt::format("{}!kv sync {}\n", data, tag), kWaitMax));
  const auto line = peer.read_line();
  if (!line) return std::nullopt;
  return Answer::parse(*line);
}

Answer Service::sync(std::string_view data, std::string_view tag) const {
  auto answer = try_sync(data, tag);
  if (!answer) throw std::runtime_error("closed without an answer; stderr:\n" + err_text());
  return *answer;
}

Json Service::stop(int signal) {
  process_.signal(signal);
  const Exit exit = process_.finish();
  if (exit.code != 0)
    throw std::runtime_error(
        fmt::format("exit {} (signal {}) after signal {}; stderr:\n{}", exit.code, exit.signal, signal, err_text()));
  return Json::parse(process_.out_text());
}

std::string numbered_lines(std::size_t count, std::string_view text) {
  std::string lines;
  for (std::size_t i = 0; i < count; ++i) lines += fmt::format("{} {}\n", text, i);
  return lines;
}

std::vector<std::pair<std::string, std::string>> scan_rows(const std::filesystem::path& dir,
                                                           std::vector<std::string> args) {
  std::vector<std::string> words{"scan", "--dir", dir.native()};
  words.insert(words.end(), args.begin(), args.end());
  std::istringstream text(run_kvq(words));
  std::vector<std::pair<std::string, std::string>> rows;
  for (std::string row; std::getline(text, row);) {
    const auto tab = row.find('\t');
    if (tab == std::string::npos) throw std::runtime_error("no tab in: " + row);
    rows.emplace_back(unescape(std::string_view(row).substr(0, tab)), unescape(std::string_view(row).substr(tab + 1)));
  }
  return rows;
}

std::vector<std::string> scan_values(const std::filesystem::path& dir) {
  std::vector<std::string> values;
  for (auto& [key, value] : scan_rows(dir)) values.push_back(std::move(value));
  return values;
}

std::uint64_t count_records(const std::filesystem::path& dir) {
  const std::string out = run_kvq({"count", "--dir", dir.native()});
  return parse_number(std::string_view(out).substr(0, out.find('\n')));
}

std::uint64_t status_kib(pid_t pid, std::string_view field) {
  std::istringstream text(file_text(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with(fmt::format("{}:", field))) continue;
    const auto from = line.find_first_of("0123456789");
    return parse_number(std::string_view(line).substr(from, line.find(' ', from) - from));
  }
  throw std::runtime_error(fmt::format("no {} of process {}", field, pid));
}

}  // namespace kvingest::test
