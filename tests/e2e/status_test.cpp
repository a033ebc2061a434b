// The pages that people and monitoring look at, end to end: /status, /metrics and /healthz.
//
// World: a kvingest of this build with --http on loopback.
#include <fmt/format.h>

#include "tests/e2e/e2e.hpp"
#include "tests/support/strace.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;

/// What the page says, behind its headers.
std::string page(const Service& service, const std::string& path) {
  const std::string all = service.http_answer(path);
  const std::size_t end = all.find("\r\n\r\n");
  REQUIRE(end != std::string::npos);
  return all.substr(end + 4);
}

Json status_of(const Service& service) {
  return Json::parse(page(service, "/status"));
}

/// The value of a metric, named with its labels.
double metric(const Service& service, const std::string& name) {
  const std::string text = "\n" + page(service, "/metrics");
  const std::size_t at = text.find("\n" + name + " ");
  CAPTURE(name, text);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + name.size() + 2));
}

Service::Options watched(const std::string& store, std::vector<std::string> args) {
  args.insert(args.end(), {"--http", "127.0.0.1:0"});
  return {.store = store, .args = std::move(args)};
}

TEST_CASE("the status says what a power cut now would lose, and a sync closes that window") {
  Service service(watched("mmap", {"--durability", "kernel"}));
  TcpClient peer = service.connect();
  peer.send_all("a\nb\nc\n");
  wait_until_read(peer);
  REQUIRE(eventually([&] { return status_of(service)["watermarks"]["stored"].number() == 3; }));
  const Json open = status_of(service);
  CHECK(open["watermarks"]["durable"].number() == 3);
  CHECK(open["watermarks"]["on_disk"].number() == 0);
  CHECK(open["loss_window"]["records"].number() == 3);
  CHECK(open["loss_window"]["text"].text().starts_with("a power cut now would lose 3 records, "));
  CHECK(metric(service, "kvingest_loss_window_records") == 3);
  CHECK(metric(service, "kvingest_loss_window_seconds") > 0);
  peer.send_all("!kv sync\n");
  CHECK(Answer::parse(peer.read_line().value()).text("level") == "disk");
  const Json closed = status_of(service);
  CHECK(closed["watermarks"]["on_disk"].number() == 3);
  CHECK(closed["loss_window"]["records"].number() == 0);
  CHECK(closed["level"].text() == "kernel");
  CHECK(metric(service, "kvingest_on_disk_sequence") == 3);
  service.stop();
}

TEST_CASE("what became of each line is counted by its class, in the status and in the metrics") {
  Service service(watched("lmdb", {"--max-line", "10"}));
  TcpClient peer = service.connect();
  peer.send_all("good\n\nmuch longer than that\nlast without an end");
  peer.finish_sending();
  CHECK(peer.read_to_end().empty());
  CHECK(send_and_finish(service.address(), "short end").empty());
  const Json status = status_of(service);
  CHECK(status["received"].number() == 5);
  CHECK(status["stored"].number() == 2);
  CHECK(status["rejected"].number() == 2);
  CHECK(status["blank"].number() == 1);
  CHECK(status["pending"].number() == 0);
  CHECK(status["unterminated"].number() == 2);
  CHECK(status["sources"]["@"]["rejected"].number() == 2);
  for (const char* const part :
       {"kvingest_messages_received_total 5", "kvingest_messages_stored_total 2", "kvingest_messages_rejected_total 2",
        "kvingest_messages_unterminated_total 2", "# TYPE kvingest_commit_seconds histogram",
        "# TYPE kvingest_sync_seconds histogram", "# TYPE kvingest_group_messages histogram",
        "# TYPE kvingest_group_bytes histogram", "kvingest_queue_bytes 0", "kvingest_paused{reason=\"no_space\"} 0"}) {
    CAPTURE(part);
    CHECK(page(service, "/metrics").find(part) != std::string::npos);
  }
  service.stop();
}

TEST_CASE("a store that is slower than the feed is named as the reason why reading rests, and no line is lost") {
  if (const auto reason = strace_missing()) KV_SKIP(*reason);
  Service service(watched("file", {"--queue-bytes", "64K"}));
  const std::string lines = numbered_lines(200'000);
  TcpClient peer = service.connect();
  std::size_t sent = 0;
  {
    Strace slow(service.pid(), {"-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:delay_exit=300000"});
    CHECK(eventually([&] {
      sent += peer.send_some(std::string_view(lines).substr(sent), 20ms);
      const Json status = status_of(service);
      return status["paused"].text() == "store_slow" && status["paused_milliseconds"].number() > 0;
    }));
    CHECK(eventually([&] { return metric(service, "kvingest_paused{reason=\"store_slow\"}") == 1; }));
    CHECK(page(service, "/healthz").find("\"healthy\":true") != std::string::npos);  // Slow is not ill.
    slow.detach();
  }
  peer.send_all(std::string_view(lines).substr(sent));
  peer.send_all("!kv sync\n");
  CHECK(Answer::parse(peer.read_line().value()).number("stored") == 200'000);
  CHECK(status_of(service)["paused"].text().empty());
  check_balance(service.stop());
}

TEST_CASE("health is the age of the last durable commit and the ability to write") {
  Service service(watched("lmdb", {}));
  const Json fresh = Json::parse(page(service, "/healthz"));
  CHECK(fresh["healthy"].text() == "true");
  CHECK(fresh["last_commit_age_milliseconds"].text() == "null");
  CHECK(service.sync("one\n").number("stored") == 1);
  const Json fed = Json::parse(page(service, "/healthz"));
  CHECK(fed["healthy"].text() == "true");
  CHECK(fed["last_commit_age_milliseconds"].number() < 60'000);
  service.stop();
}

TEST_CASE("peers that are turned away are counted") {
  Service service(watched("map", {"--max-connections", "1"}));
  TcpClient held = service.connect();
  held.send_all("!kv status\n");
  CHECK(held.read_line());
  for (int i = 1; i <= 3; ++i) {
    TcpClient refused = service.connect();
    const auto line = refused.read_line();
    REQUIRE(line);
    CHECK(Answer::parse(*line).text("code") == "too_many_connections");
    CHECK(status_of(service)["connections_refused"].number() == static_cast<std::uint64_t>(i));
  }
  CHECK(metric(service, "kvingest_connections_refused_total") == 3);
  held.close();
  service.stop();
}

TEST_CASE("a sender is told how long a line may be before it sends one") {
  Service service({.args = {"--max-line", "2K"}});
  TcpClient peer = service.connect();
  peer.send_all("!kv hello source=s\n");
  CHECK(Answer::parse(peer.read_line().value()).number("max_line") == 2048);
  service.stop();
}

}  // namespace
}  // namespace kvingest::test
