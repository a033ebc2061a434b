// ycsb_redis.hpp -- a server that speaks RESP (Redis, Valkey, Kvrocks and others) under the workloads of ycsb: a column
// beside the stores, marked, since each call is a round trip and its durability is the server's own affair.
//
// Only servers on this machine are taken, and only empty ones; close() deletes the records.
//
// Threads: one.
#pragma once

#include <memory>
#include <string_view>

#include "bench/ycsb_run.hpp"
#include "feed/tcp.hpp"

namespace kvingest::bench {

/// "redis://127.0.0.1:6379". Fails with: invalid_argument (another scheme, or not this machine).
[[nodiscard]] Result<feed::Address> parse_external(std::string_view url);

/// Fails with: io_error (nobody listens, or it does not speak RESP), invalid_argument (it holds keys already).
[[nodiscard]] Result<std::unique_ptr<YcsbTarget>> open_ycsb_redis(const feed::Address& address);

}  // namespace kvingest::bench
