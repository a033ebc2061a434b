#include "net/status_server.hpp"

#include <httplib.h>

#include <thread>

#include "base/thread.hpp"

namespace kvingest::net {
namespace {

constexpr std::size_t kThreads = 2;  // A scraper and a person; more wait.

/// httplib's own choice lets two processes share a port; then half of the requests would go to the other one.
void reuse_address_only(socket_t fd) {
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

bool is_allowed(const httplib::Request& request, const TokenBook& tokens) {
  constexpr std::string_view kBearer = "Bearer ";
  if (request.path == "/healthz") return true;
  const std::string said = request.get_header_value("Authorization");
  return said.starts_with(kBearer) && tokens.find(std::string_view(said).substr(kBearer.size()));
}

httplib::Server::HandlerResponse turn_away(httplib::Response& answer) {
  answer.status = 401;
  answer.set_header("WWW-Authenticate", "Bearer");
  answer.set_content("say a token of --token-file: Authorization: Bearer TOKEN\n", "text/plain");
  return httplib::Server::HandlerResponse::Handled;
}

}  // namespace

struct StatusServer::Server {
  httplib::Server http;
  std::thread thread;
};

StatusServer::StatusServer() : server_(std::make_unique<Server>()) {}

StatusServer::~StatusServer() {
  stop();
}

Result<std::unique_ptr<StatusServer>> StatusServer::open(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return fail(Code::invalid_argument, "--http {}: takes HOST:PORT only", endpoint.text());
  std::unique_ptr<StatusServer> made(new StatusServer());
  httplib::Server& http = made->server_->http;
  http.set_socket_options(reuse_address_only);
  http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };  // httplib deletes it.
  int port = std::stoi(endpoint.port);
  errno = 0;
  if (port == 0) {
    port = http.bind_to_any_port(endpoint.host);
  } else if (!http.bind_to_port(endpoint.host, port)) {
    port = -1;
  }
  if (port <= 0 && errno == EADDRINUSE) {
    return fail(Code::busy, "{}: already in use; stop what listens there or choose another with --http",
                endpoint.text());
  }
  if (port <= 0) return fail(errno != 0 ? errno : EIO, "listen on {}", endpoint.text());
  made->address_ = Endpoint{endpoint.host, std::to_string(port), {}}.text();
  return made;
}

void StatusServer::start(StatusPages pages, const TokenBook* tokens) {
  httplib::Server& http = server_->http;
  if (tokens != nullptr) {
    http.set_pre_routing_handler([tokens](const httplib::Request& request, httplib::Response& answer) {
      return is_allowed(request, *tokens) ? httplib::Server::HandlerResponse::Unhandled : turn_away(answer);
    });
  }
  http.Get("/status", [page = std::move(pages.status)](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(page(), "application/json");
  });
  http.Get("/metrics", [page = std::move(pages.metrics)](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(page(), "text/plain; version=0.0.4; charset=utf-8");
  });
  http.Get("/healthz", [page = std::move(pages.health)](const httplib::Request&, httplib::Response& answer) {
    StatusPages::Health health = page();
    answer.status = health.ok ? 200 : 503;
    answer.set_content(health.json, "application/json");
  });
  server_->thread = std::thread([&http] {
    name_this_thread("kv-http");
    http.listen_after_bind();
  });
  while (!http.is_running()) std::this_thread::yield();  // stop() before it runs would be lost.
}

void StatusServer::stop() {
  if (!server_->thread.joinable()) return;
  server_->http.stop();
  server_->thread.join();
}

}  // namespace kvingest::net
