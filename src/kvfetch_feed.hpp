// kvfetch_feed.hpp -- the target that is a running kvingest: a commit's records go over a feed connection as JSON
// lines, and when its sync is answered the notes go into a small store of our own.
//
// What was sent without its notes is sent again by a later run; the keys that the service makes of the lines make it
// one.
//
// Threads: one.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "feed/tcp.hpp"
#include "http/load/target.hpp"

namespace kvingest::kvfetch {

class FeedTarget final : public fetch::Target {
 public:
  /// Connects. `state` holds the notes and outlives it. Fails with: io_error, invalid_argument.
  static Result<std::unique_ptr<FeedTarget>> connect(const feed::Address& address, Store& state, std::stop_token stop);

  Result<std::optional<std::string>> find(std::string_view) override { return std::optional<std::string>(); }
  [[nodiscard]] bool knows_records() const noexcept override { return false; }
  Result<void> commit(std::span<const fetch::Record* const> records, const fetch::Notes& notes) override;
  Result<std::optional<std::string>> note(std::string_view name) override { return notes_.note(name); }

 private:
  FeedTarget(feed::Stream stream, Store& state, std::stop_token stop)
      : stream_(std::move(stream)), notes_(state), stop_(std::move(stop)) {}

  Result<void> send(std::string_view bytes);
  Result<std::string> read_line();
  Result<void> wait_for_sync(const std::string& tag);

  feed::Stream stream_;
  fetch::StoreTarget notes_;
  std::stop_token stop_;
  std::string unread_;
  std::uint64_t syncs_ = 0;
  std::uint64_t rejected_ = 0;  // As of the last sync.
};

}  // namespace kvingest::kvfetch
