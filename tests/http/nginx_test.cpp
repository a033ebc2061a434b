// The client against nginx on loopback, with TLS and HTTP/2, as real servers are: multiplexing, GOAWAY, gzip, ranges
// and a limit of requests. nginx is started here, in a folder of its own, and ends with the test.
#include <csignal>
#include <filesystem>
#include <memory>
#include <set>

#include "tests/http/client.hpp"
#include "tests/support/process.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/tcp_client.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {
namespace {

using http::Kind;

std::optional<std::string> nginx_missing() {
  for (const char* program : {"nginx", "openssl"}) {
    if (run({"sh", "-c", std::string("PATH=$PATH:/usr/sbin command -v ") + program}).exit.code != 0) {
      return std::string(program) + " is not installed";
    }
  }
  return std::nullopt;
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i) + "\n";
  return text;
}

class Nginx {
 public:
  Nginx() {
    namespace fs = std::filesystem;
    fs::create_directories(dir_ / "www");
    fs::create_directories(dir_ / "tmp");
    // Its workers run as another user when root starts it.
    fs::permissions(dir_.path(), fs::perms::all);
    write_text(dir_ / "www/small", "small");
    write_text(dir_ / "www/large.txt", numbers(50'000));
    write_text(dir_ / "www/large.bin", numbers(50'000));
    const Finished made = run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                               "-nodes", "-keyout", dir_ / "key.pem", "-out", certificate(), "-days", "2", "-subj",
                               "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"});
    INFO(made.err);
    REQUIRE(made.exit == Exit{0});
    start();
  }
  ~Nginx() {
    process_->signal(SIGTERM);
    process_->wait(std::chrono::seconds(10));
  }
  Nginx(const Nginx&) = delete;
  Nginx& operator=(const Nginx&) = delete;

  [[nodiscard]] std::string url(const std::string& path) const {
    return "https://127.0.0.1:" + std::to_string(tls_) + path;
  }
  [[nodiscard]] std::string plain_url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(plain_) + path;
  }
  [[nodiscard]] std::filesystem::path certificate() const { return dir_ / "cert.pem"; }
  [[nodiscard]] const TempDir& dir() const { return dir_; }

  [[nodiscard]] http::SessionOptions trusting() const {
    auto options = on_loopback();
    options.ca_file = certificate();
    return options;
  }

  /// Connections and requests so far, of which the log has a line each: `CONNECTION STATUS PROTOCOL`.
  [[nodiscard]] std::set<std::string> connections() const {
    std::set<std::string> seen;
    const std::string log = file_text(dir_ / "access.log");
    for (std::size_t at = 0; at < log.size(); at = log.find('\n', at) + 1) {
      seen.insert(log.substr(at, log.find(' ', at) - at));
    }
    return seen;
  }
  [[nodiscard]] std::string log() const { return file_text(dir_ / "access.log"); }

 private:
  void start() {
    // A free port may be taken before nginx has it: then another one.
    for (int attempt = 0; attempt < 5; ++attempt) {
      tls_ = TcpListener().port();
      plain_ = TcpListener().port();
      write_text(dir_ / "nginx.conf", config());
      process_ = std::make_unique<Process>(std::vector<std::string>{
          "sh", "-c", "PATH=$PATH:/usr/sbin exec nginx -p \"$0\" -c nginx.conf -e error.log", dir_.path().native()});
      const bool listens = eventually([&] { return can_connect() || !process_->running(); });
      if (listens && process_->running()) return;
    }
    FAIL("nginx does not start: " << process_->err_text() << file_text(dir_ / "error.log"));
  }

  bool can_connect() const {
    try {
      const TcpClient probe("127.0.0.1:" + std::to_string(tls_), milliseconds(200));
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  std::string config() const {
    return "daemon off;\nworker_processes 1;\npid nginx.pid;\nerror_log error.log;\nevents { worker_connections 512; "
           "}\n"
           "http {\n"
           "  client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; "
           "scgi_temp_path tmp;\n"
           "  log_format short '$connection $status $server_protocol';\n  access_log access.log short;\n"
           "  default_type text/plain;\n  gzip on;\n  gzip_types text/plain;\n  gzip_min_length 100;\n"
           "  types { application/octet-stream bin; }\n"
           "  limit_req_zone $binary_remote_addr zone=few:1m rate=20r/s;\n"
           "  server {\n    listen 127.0.0.1:" +
           std::to_string(tls_) + " ssl http2;\n    listen 127.0.0.1:" + std::to_string(plain_) +
           ";\n    ssl_certificate cert.pem;\n    ssl_certificate_key key.pem;\n    root www;\n"
           "    keepalive_requests 1000;\n"
           "    location /limited { limit_req zone=few; limit_req_status 429; try_files /small =404; }\n"
           "  }\n}\n";
  }

  TempDir dir_;
  int tls_ = 0;
  int plain_ = 0;
  std::unique_ptr<Process> process_;
};

std::vector<http::Request> many_of(const std::string& url, int count, unsigned attempts = 3) {
  std::vector<http::Request> requests;
  for (int i = 0; i < count; ++i) requests.push_back({.url = url, .retry = quick_retries(attempts)});
  return requests;
}

TEST_CASE("http nginx: over TLS many requests share one connection") {
  if (const auto reason = nginx_missing()) KV_SKIP(*reason);
  Nginx nginx;
  http::Session session(nginx.trusting());
  REQUIRE_OK(session.limit(nginx.url("/"), {.in_flight = 32}));
  CHECK(session.gather(many_of(nginx.url("/small"), 300)).complete());
  REQUIRE(eventually([&] { return nginx.log().find("HTTP/2.0") != std::string::npos; }));
  CHECK(nginx.connections().size() == 1);
  CHECK(session.origins().at(0).protocol == "h2");
}

TEST_CASE("http nginx: a server that sends its clients away after so many requests costs none of them") {
  if (const auto reason = nginx_missing()) KV_SKIP(*reason);
  Nginx nginx;
  http::Session session(nginx.trusting());
  REQUIRE_OK(session.limit(nginx.url("/"), {.in_flight = 16}));
  CHECK(session.gather(many_of(nginx.url("/small"), 2500)).complete());  // Two GOAWAYs lie in this.
}

TEST_CASE("http nginx: over HTTP/1 requests go side by side over a few connections") {
  if (const auto reason = nginx_missing()) KV_SKIP(*reason);
  Nginx nginx;
  http::Session session(on_loopback());
  REQUIRE_OK(session.limit(nginx.plain_url("/"), {.in_flight = 32, .connections = 5}));
  CHECK(session.gather(many_of(nginx.plain_url("/small"), 200)).complete());
  REQUIRE(eventually([&] { return !nginx.connections().empty(); }));
  CHECK(nginx.connections().size() <= 5);
}

TEST_CASE("http nginx: a certificate that nobody vouches for is refused, and so is another name") {
  if (const auto reason = nginx_missing()) KV_SKIP(*reason);
  Nginx nginx;
  http::Session strict(on_loopback());
  const auto refused = strict.get(nginx.url("/small"), quick());
  CHECK_KIND(refused, Kind::tls);
  CHECK(refused.attempts == 1);
  CHECK(refused.body.empty());
}

TEST_CASE("http nginx: compressed bodies arrive whole over both protocols") {
  if (const auto reason = nginx_missing()) KV_SKIP(*reason);
  Nginx nginx;
  http::Session session(nginx.trusting());
  for (const std::string& url : {nginx.url("/large.txt"), nginx.plain_url("/large.txt")}) {
    const auto response = session.get(url, quick());
    CHECK_KIND(response, Kind::none);
    CHECK(response.header("content-encoding") == "gzip");
    CHECK(response.body == numbers(50'000));
    CHECK(response.proven_whole);
  }
}

TEST_CASE("http nginx: a download goes on in the middle of a file, also of one that would be compressed") {
  if (const auto reason = nginx_missing()) KV_SKIP(*reason);
  Nginx nginx;
  http::Session session(nginx.trusting());
  for (const std::string name : {"large.bin", "large.txt"}) {
    const auto head =
        session.request({.url = nginx.url("/" + name), .headers = {{"Accept-Encoding", "identity"}}, .method = "HEAD"});
    REQUIRE(head.ok());
    const auto file = nginx.dir() / name;
    const std::string whole = numbers(50'000);
    write_text(file.native() + ".part", whole.substr(0, 100'000));
    write_text(file.native() + ".part.info", std::string(head.header("etag")) + "\n0\n");
    const auto done = session.download(nginx.url("/" + name), file, {}, quick());
    CHECK_KIND(done.response, Kind::none);
    CHECK(done.resumed_from == 100'000);
    CHECK(file_text(file) == whole);
  }
}

TEST_CASE("http nginx: a limit that is known costs nearly no refusal, and one that is not costs few") {
  if (const auto reason = nginx_missing()) KV_SKIP(*reason);
  Nginx nginx;
  http::Session session(nginx.trusting());
  http::OriginLimits limits{.in_flight = 8};
  limits.spacing = milliseconds(60);  // 20 a second are one each 50 ms.
  REQUIRE_OK(session.limit(nginx.url("/"), limits));
  CHECK(session.gather(many_of(nginx.url("/limited"), 40, 5)).complete());
  CHECK(session.origins().at(0).refused <= 2);

  http::Session unaware(nginx.trusting());
  REQUIRE_OK(unaware.limit(nginx.url("/"), {.in_flight = 32, .breaker_failures = 1000}));
  CHECK(unaware.gather(many_of(nginx.url("/limited"), 40, 50)).complete());
  CHECK(unaware.origins().at(0).refused < 40);
}

}  // namespace
}  // namespace kvingest::test
