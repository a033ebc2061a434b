#include "net/status_server.hpp"

#include <httplib.h>

#include <algorithm>
#include <thread>

#include "base/thread.hpp"

namespace kvingest::net {
namespace {

constexpr std::size_t kThreads = 8;             // Scrapers, and people with several pages open; more wait.
constexpr std::time_t kPatienceSeconds = 5;     // For each piece of a request or answer; then the thread is free again.
constexpr std::size_t kRequestBytesMax = 4096;  // Of a body, which none of the pages takes.

/// The page loads what is served beside it, and nothing from elsewhere; nobody may show it in a frame of his.
const httplib::Headers kHeaders = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

/// httplib's own choice lets two processes share a port; then half of the requests would go to the other one.
void reuse_address_only(socket_t fd) {
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

bool is_allowed(const httplib::Request& request, const TokenBook& tokens) {
  constexpr std::string_view kBearer = "Bearer ";
  // The page itself holds nothing of the store; it asks for the token that its questions need.
  const auto is_asked = [&request](const PageAsset& asset) { return asset.path == request.path; };
  if (request.path == "/healthz" || std::ranges::any_of(page_assets(), is_asked)) return true;
  const std::string said = request.get_header_value("Authorization");
  return said.starts_with(kBearer) && tokens.find(std::string_view(said).substr(kBearer.size()));
}

httplib::Server::HandlerResponse turn_away(httplib::Response& answer) {
  answer.status = 401;
  answer.set_header("WWW-Authenticate", "Bearer");
  answer.set_content("say a token of --token-file: Authorization: Bearer TOKEN\n", "text/plain");
  return httplib::Server::HandlerResponse::Handled;
}

/// Whether a request to a loopback address may name `host`: an address or localhost. Any other name could be one of a
/// stranger's web page that was made to point here.
bool is_loopback_name(std::string_view host) {
  const bool v6 = host.starts_with('[');
  const std::size_t end = v6 ? host.find(']') : host.find(':');
  const std::string_view name = host.substr(0, end);
  if (v6) return name == "[::1";
  return name == "localhost" || (name.starts_with("127.") && name.find_first_not_of("0123456789.") == name.npos);
}

PageQuery query_of(const httplib::Request& request) {
  PageQuery query;
  for (const auto& [name, value] : request.params) query.emplace(name, value);
  return query;
}

using RecordPage = std::function<PageReply(const PageQuery&)>;

httplib::Server::Handler answer_with(RecordPage page) {
  return [page = std::move(page)](const httplib::Request& request, httplib::Response& answer) {
    const PageReply reply = page(query_of(request));
    answer.status = reply.status;
    answer.set_content(reply.json, "application/json");
  };
}

}  // namespace

struct StatusServer::Server {
  httplib::Server http;
  std::thread thread;
  bool only_loopback = false;
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
  http.set_default_headers(kHeaders);
  http.set_payload_max_length(kRequestBytesMax);
  http.set_read_timeout(kPatienceSeconds);
  http.set_write_timeout(kPatienceSeconds);
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
  const auto addresses = resolve(endpoint);
  made->server_->only_loopback = addresses && is_local(addresses->front());
  made->address_ = Endpoint{endpoint.host, std::to_string(port), {}}.text();
  return made;
}

void StatusServer::start(StatusPages pages, const TokenBook* tokens) {
  httplib::Server& http = server_->http;
  http.set_pre_routing_handler([this, tokens](const httplib::Request& request, httplib::Response& answer) {
    if (!server_->only_loopback || is_loopback_name(request.get_header_value("Host"))) {
      const bool allowed = tokens == nullptr || is_allowed(request, *tokens);
      return allowed ? httplib::Server::HandlerResponse::Unhandled : turn_away(answer);
    }
    answer.status = 403;
    answer.set_content("{\"error\":\"this is a loopback address: ask for it as 127.0.0.1 or localhost\"}\n",
                       "application/json");
    return httplib::Server::HandlerResponse::Handled;
  });
  for (const PageAsset& asset : page_assets()) {
    http.Get(std::string(asset.path), [&asset](const httplib::Request&, httplib::Response& answer) {
      answer.set_content(asset.text.data(), asset.text.size(), std::string(asset.type));
    });
  }
  http.Get("/keys", answer_with(std::move(pages.keys)));
  http.Get("/value", answer_with(std::move(pages.value)));
  http.Get("/series", answer_with(std::move(pages.series)));
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
