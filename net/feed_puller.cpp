// The pulling side of FeedWorker: connects to a feed and stays with it until its stop line.
#include <asio/co_spawn.hpp>
#include <asio/connect.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include "base/check.hpp"
#include "base/log.hpp"
#include "net/feed_worker.hpp"

namespace kvingest::net {
namespace {

constexpr std::chrono::milliseconds kBackOffFirst{50};
constexpr std::chrono::milliseconds kBackOffLongest{5000};  // A feed that comes back is found within seconds.

}  // namespace

void FeedWorker::pull(Endpoint from) {
  asio::post(context_, [this, from = std::move(from)]() mutable {
    ++pulls_;
    asio::co_spawn(context_, pull_until_stopped(std::move(from)), [this](const std::exception_ptr& error) {
      KV_ASSERT(error == nullptr);
      --pulls_;
      finish_if_idle();
    });
  });
}

asio::awaitable<void> FeedWorker::pull_until_stopped(Endpoint from) {
  auto back_off = kBackOffFirst;
  bool said = false;
  while (!draining_) {
    StreamProtocol::socket socket(context_);
    asio::error_code error;
    auto addresses = resolve(from);
    std::string why;
    if (!addresses) {
      why = addresses.error().text;
    } else {
      // The socket is known to the loop while it connects, so that drain() is not kept waiting by a silent peer.
      for (const auto& address : *addresses) {
        error.clear();
        socket.close(error);
        co_await socket.async_connect(address, asio::redirect_error(asio::use_awaitable, error));
        if (!error) break;
      }
      if (error) why = error.message();
    }
    if (why.empty() && !draining_) {
      said = false;
      back_off = kBackOffFirst;
      log_info("pulling from {}", from.text());
      FeedConnection& connection = add(std::move(socket), from.text(), FeedRole::pulled);
      const std::uint64_t id = last_id_;
      const FeedEnd end = co_await connection.run();
      remove(id);
      if (end == FeedEnd::stop_line) {
        if (options_.pull_ended) options_.pull_ended();
        co_return;
      }
      if (end == FeedEnd::stopped) co_return;
      why = "the connection ended before the stop line";
    }
    if (draining_) co_return;
    if (!said) log_warning("{}: {}; trying again", from.text(), why);
    said = true;
    pull_pause_.expires_after(back_off);
    co_await pull_pause_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    back_off = std::min(back_off * 2, kBackOffLongest);
  }
}

}  // namespace kvingest::net
