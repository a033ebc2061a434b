// What the top README shows, run as it is written, so that it cannot rot.
//
// World: a shell in a directory of its own, with this build's programs first on the path and a copy of data/. Only two
// things differ from what is written: the port is a free one, and where a person waits a second until kvingest listens,
// the shell waits until it does.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

namespace fs = std::filesystem;

std::string readme() {
  return file_text(project_folder() / "README.md");
}

/// The shell blocks in which `word` stands.
std::vector<std::string> shell_blocks(std::string_view word) {
  std::vector<std::string> found;
  std::istringstream text(readme());
  std::string block;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line == "```sh") {
      inside = true;
      block.clear();
    } else if (inside && line == "```") {
      inside = false;
      if (block.find(word) != std::string::npos) found.push_back(block);
    } else if (inside) {
      block += line + "\n";
    }
  }
  return found;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

int free_port() {
  return TcpListener().port();
}

std::optional<std::string> nc_missing() {
  if (run({"nc", "-h"}).exit.code == 127) return "nc (netcat-openbsd) is not installed";
  return std::nullopt;
}

Finished run_shell(const std::string& script, const TempDir& dir, int port) {
  write_text(dir / "script", script);
  return run({"bash", "-eu", "-o", "pipefail", (dir / "script").native()},
             {.env = {{"KVINGEST_LISTEN", fmt::format("127.0.0.1:{}", port)}}, .cwd = dir.path()});
}

TEST_CASE("the quick start of the README runs as it is written") {
  if (const auto reason = nc_missing()) KV_SKIP(*reason);
  const auto blocks = shell_blocks("kvq scan --prefix");
  REQUIRE(blocks.size() == 1);
  const TempDir dir;
  fs::create_directory(dir / "data");
  fs::create_directories(dir / "build/release");
  fs::copy_file(project_folder() / "data/daily_bars.csv", dir / "data/daily_bars.csv");
  fs::create_directory_symlink(build_folder() / "bin", dir / "build/release/bin");
  const int port = free_port();
  std::string script = blocks.front();
  REQUIRE(script.find("\nsleep 1 ") != std::string::npos);
  REQUIRE(script.find("kill %1") != std::string::npos);
  script = replaced(script, "\nsleep 1 ", "\nuntil nc -z 127.0.0.1 5555; do sleep 0.05; done ");
  script = replaced(script, "5555", std::to_string(port)) + "wait %1\n";
  const Finished done = run_shell(script, dir, port);
  CAPTURE(script, done.out, done.err);
  CHECK(done.exit.code == 0);
  CHECK(done.out.find("AAPL,2017-12-29,170.52,170.59,169.22,169.23,") == 0);  // The value of `kvq get`.
  CHECK(done.out.find("\nTSLA/2017-12-29\tTSLA,2017-12-29,") != std::string::npos);
  CHECK(done.out.find("Total Messages Ingested: 500\n") != std::string::npos);
}

/// The words of the README's command that makes keys by `key`.
std::string loading_command(const std::string& key) {
  std::istringstream text(readme());
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("kvingest --format ") && line.find("--key '" + key + "'") != std::string::npos)
      return line.substr(0, line.find("  #"));
  }
  FAIL("the README shows no command with --key '" << key << "'");
  return {};
}

TEST_CASE("published files load with one command each, as the README shows") {
  if (const auto reason = nc_missing()) KV_SKIP(*reason);
  struct File {
    std::string key;
    std::string bytes;
    std::map<std::string, std::string> records;
  };
  const std::string object =
      R"({"chart":{"result":[{"meta":{"currency":"USD","symbol":"AAA"},"timestamp":[1,2],"close":[1.5,null]}],)"
      R"("error":null}})";
  const std::vector<File> files = {
      {"AAPL/{Date}",
       "Date,AAPL.Open,direction\r\n2015-02-17,127.489998,Increasing\r\n2015-02-18,127.629997,Increasing\r\n",
       {{"AAPL/2015-02-17", "2015-02-17,127.489998,Increasing"},
        {"AAPL/2015-02-18", "2015-02-18,127.629997,Increasing"}}},
      {"{symbol}/{date}",
       "symbol,date,price\nMSFT,Jan 1 2000,39.81\nAAPL,Mar 1 2010,223.02",
       {{"MSFT/Jan 1 2000", "MSFT,Jan 1 2000,39.81"}, {"AAPL/Mar 1 2010", "AAPL,Mar 1 2010,223.02"}}},
      {"{CURRENCY}/{TIME_PERIOD}",
       "FREQ,CURRENCY,TIME_PERIOD,OBS_VALUE\nD,AUD,2026-02-17,1.6776\nD,ZAR,2026-02-18,19.1\n",
       {{"AUD/2026-02-17", "D,AUD,2026-02-17,1.6776"}, {"ZAR/2026-02-18", "D,ZAR,2026-02-18,19.1"}}},
      {"{/chart/result/0/meta/symbol}", object, {{"AAA", object}}}};
  for (const File& file : files) {
    CAPTURE(file.key);
    const TempDir dir;
    write_text(dir / "FILE", file.bytes);
    const int port = free_port();
    const std::string script = fmt::format(
        "PATH={}:$PATH\n"
        "{} >ledger &\n"
        "until nc -z 127.0.0.1 {}; do sleep 0.05; done\n"
        "nc -N 127.0.0.1 {} <FILE\n"
        "kill %1\n"
        "wait %1\n",
        (build_folder() / "bin").string(), loading_command(file.key), port, port);
    const Finished done = run_shell(script, dir, port);
    CAPTURE(script, done.err);
    CHECK(done.exit.code == 0);
    const auto rows = scan_rows(dir / "kvdata");
    const bool same = std::map<std::string, std::string>(rows.begin(), rows.end()) == file.records;
    CHECK(same);
    CHECK(run({program("kvq"), "rejects", "list", "--dir", (dir / "kvdata").native()}).out.empty());
  }
}

}  // namespace
}  // namespace kvingest::test
