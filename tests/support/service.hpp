// service.hpp -- a kvingest in a child process, on ports of its own choosing.
//
//   Service service({.store = "lmdb"});
//   const Answer answer = service.sync("one\ntwo\n");
//   CHECK(answer.number("stored") == 2);
//   CHECK(service.stop()["received"].number() == 2);
//
// Threads and errors: as in process.hpp.
#pragma once

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/tcp_client.hpp"

namespace kvingest::test {

/// One answer of the feed protocol: `!kv synced tag=t line=2 ...`.
struct Answer {
  std::string line;
  std::string word;  ///< "synced"
  std::map<std::string, std::string> fields;

  /// Takes an answer apart; throws on what is none.
  static Answer parse(std::string_view line);
  /// A field's value, empty when it has none.
  [[nodiscard]] std::string text(std::string_view name) const;
  /// A field as a number; throws when it is none.
  [[nodiscard]] std::uint64_t number(std::string_view name) const;
};

class Service {
 public:
  struct Options {
    std::string store = "lmdb";
    std::filesystem::path dir = {};         ///< Empty: a new one, removed with the Service.
    std::vector<std::string> args = {};     ///< More arguments.
    bool listen = true;                     ///< Adds --listen 127.0.0.1:0.
    std::vector<std::string> wrapper = {};  ///< A command that runs it in its own place: strace -D ...
    Process::Options process = {};
  };

  /// Starts it and waits until it is ready. Throws with its stderr when it ends before.
  explicit Service(const Options& options);
  Service() : Service(Options{}) {}

  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  [[nodiscard]] Process& process() noexcept { return process_; }
  [[nodiscard]] const std::filesystem::path& dir() const noexcept { return dir_; }
  /// Where it listens: "127.0.0.1:40123".
  [[nodiscard]] const std::string& address(const std::string& listener = "feed") const { return ports_.at(listener); }
  [[nodiscard]] std::string err_text() const { return process_.err_text(); }

  [[nodiscard]] TcpClient connect(const std::string& listener = "feed") const { return TcpClient(address(listener)); }
  /// Sends `data` and a sync on a connection of its own; returns the answer, or nothing when it was closed instead.
  [[nodiscard]] std::optional<Answer> try_sync(std::string_view data, std::string_view tag = "t") const;
  /// As try_sync(), but a missing answer is thrown.
  [[nodiscard]] Answer sync(std::string_view data, std::string_view tag = "t") const;

  /// What its --http page answers to a GET, with the headers.
  [[nodiscard]] std::string http_answer(std::string_view path) const;

  /// Ends it by `signal` and returns its ledger; throws when it does not exit with 0.
  Json stop(int signal = SIGTERM);
  void kill() { process_.kill(); }

 private:
  std::vector<std::string> command_line(const Options& options) const;

  TempDir temp_;
  std::filesystem::path dir_;
  Process process_;
  std::map<std::string, std::string> ports_;
};

/// Waits until `port_file` is there and returns its listeners by name; throws with its stderr when `process` ends
/// before.
std::map<std::string, std::string> wait_for_ports(Process& process, const std::filesystem::path& port_file);

/// "TEXT 0\nTEXT 1\n", count lines.
[[nodiscard]] std::string numbered_lines(std::size_t count, std::string_view text = "Benchmark Message");

/// What `kvq scan` finds in a store directory, with the documented escapes undone: (key, value) in key order.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> scan_rows(const std::filesystem::path& dir,
                                                                         std::vector<std::string> args = {});
/// The values alone.
[[nodiscard]] std::vector<std::string> scan_values(const std::filesystem::path& dir);
/// What `kvq count` prints.
[[nodiscard]] std::uint64_t count_records(const std::filesystem::path& dir);

/// The field of /proc/PID/status, in KiB: "RssAnon".
[[nodiscard]] std::uint64_t status_kib(pid_t pid, std::string_view field);

}  // namespace kvingest::test
