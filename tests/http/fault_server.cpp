#include "tests/http/fault_server.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <asio.hpp>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace kvingest::test {
namespace {

using asio::ip::tcp;

constexpr std::size_t kHeadBytesMax = 64 * 1024;

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return text;
}

Seen parse_head(std::string_view text) {
  Seen seen;
  const std::size_t line_end = text.find("\r\n");
  const std::string_view line = text.substr(0, line_end);
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', first + 1);
  seen.method = line.substr(0, first);
  seen.target = line.substr(first + 1, second - first - 1);
  seen.path = seen.target.substr(0, seen.target.find('?'));
  text.remove_prefix(line_end + 2);
  while (!text.empty() && !text.starts_with("\r\n")) {
    const std::string_view one = text.substr(0, text.find("\r\n"));
    const std::size_t colon = one.find(':');
    std::string_view value = one.substr(std::min(one.size(), colon + 1));
    while (value.starts_with(' ')) value.remove_prefix(1);
    seen.headers[lower(std::string(one.substr(0, colon)))] = value;
    text.remove_prefix(one.size() + 2);
  }
  return seen;
}

}  // namespace

std::string Seen::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

Step send(std::string bytes) {
  return {Step::What::send, std::move(bytes)};
}
Step wait(std::chrono::milliseconds time) {
  return {Step::What::wait, {}, time};
}
Step stall() {
  return {Step::What::stall, {}};
}
Step close() {
  return {Step::What::close, {}};
}
Step reset() {
  return {Step::What::reset, {}};
}

std::string head(int status, const HeaderFields& headers) {
  std::string text = fmt::format("HTTP/1.1 {} Told\r\n", status);
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  return text + "\r\n";
}

Reply answer(int status, std::string_view body, HeaderFields headers) {
  headers.emplace_back("Content-Length", std::to_string(body.size()));
  return {send(head(status, headers) + std::string(body))};
}

std::string chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

std::string gzipped(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("zlib");
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct FaultServer::Impl {
  asio::io_context io{1};
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  mutable std::mutex mutex;
  std::map<std::string, Route> routes;  // Guarded by mutex, as what follows.
  std::vector<Seen> seen;
  int connections = 0;
  std::thread thread;

  asio::awaitable<void> serve() {
    while (true) {
      asio::error_code error;
      tcp::socket socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      int number = 0;
      {
        const std::lock_guard lock(mutex);
        number = ++connections;
      }
      asio::co_spawn(io, talk(std::move(socket), number), asio::detached);
    }
  }

  asio::awaitable<void> talk(tcp::socket socket, int number) {
    socket.set_option(tcp::no_delay(true));
    std::string buffer;
    while (true) {
      asio::error_code error;
      const std::size_t bytes =
          co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer, kHeadBytesMax), "\r\n\r\n",
                                          asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      Seen request = parse_head(buffer);
      buffer.erase(0, bytes);
      const std::string length = request.header("content-length");
      const std::size_t body = length.empty() ? 0 : std::stoul(length);
      if (buffer.size() < body) {
        co_await asio::async_read(socket, asio::dynamic_buffer(buffer), asio::transfer_exactly(body - buffer.size()),
                                  asio::redirect_error(asio::use_awaitable, error));
        if (error) co_return;
      }
      request.body = buffer.substr(0, body);
      buffer.erase(0, body);
      request.connection = number;
      request.at = std::chrono::steady_clock::now();
      const Reply steps = steps_for(std::move(request));
      if (!co_await take_steps(socket, steps)) co_return;
    }
  }

  Reply steps_for(Seen request) {
    Route route;
    {
      const std::lock_guard lock(mutex);
      for (const Seen& one : seen) request.count += one.path == request.path ? 1 : 0;
      ++request.count;
      seen.push_back(request);
      const auto found = routes.find(request.path);
      if (found != routes.end()) route = found->second;
    }
    return route ? route(request) : answer(404, "no such route");
  }

  /// False: the connection has ended.
  asio::awaitable<bool> take_steps(tcp::socket& socket, const Reply& steps) {
    asio::error_code error;
    for (const Step& step : steps) {
      if (step.what == Step::What::send) {
        co_await asio::async_write(socket, asio::buffer(step.bytes), asio::redirect_error(asio::use_awaitable, error));
        if (error) co_return false;
      } else if (step.what == Step::What::wait) {
        asio::steady_timer timer(io, step.time);
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
      } else if (step.what == Step::What::stall) {
        char byte = 0;
        co_await socket.async_read_some(asio::buffer(&byte, 1), asio::redirect_error(asio::use_awaitable, error));
        co_return false;
      } else {
        if (step.what == Step::What::reset) socket.set_option(asio::socket_base::linger(true, 0), error);
        if (step.what == Step::What::close) socket.shutdown(tcp::socket::shutdown_send, error);
        socket.close(error);
        co_return false;
      }
    }
    co_return true;
  }
};

FaultServer::FaultServer() : impl_(std::make_unique<Impl>()) {
  asio::co_spawn(impl_->io, impl_->serve(), asio::detached);
  impl_->thread = std::thread([io = &impl_->io] { io->run(); });
}

FaultServer::~FaultServer() {
  impl_->io.stop();
  impl_->thread.join();
}

void FaultServer::on(std::string path, Route route) {
  const std::lock_guard lock(impl_->mutex);
  impl_->routes[std::move(path)] = std::move(route);
}

std::string FaultServer::origin() const {
  return fmt::format("http://127.0.0.1:{}", impl_->acceptor.local_endpoint().port());
}

std::vector<Seen> FaultServer::seen() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->seen;
}

int FaultServer::connections() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->connections;
}

}  // namespace kvingest::test
