// resp_store_commands.hpp -- commands about the store as a whole: what it holds in order, how much, and what it is.
//
// What may take long runs aside, so that other clients of the worker are served meanwhile.
//
// Threads: a worker's, or the one aside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net/resp_command.hpp"
#include "net/resp_scan.hpp"

namespace kvingest::net {

/// KV.RANGE, and what KV.ADMIN asks of the meta space.
struct RangeRequest {
  Space space = Space::records;
  std::optional<std::string> first;
  std::optional<std::string> last;
  std::uint64_t limit = 1'000;
  bool reverse = false;
  bool page = false;  ///< The answer may end early, with one record at least: the caller asks for more behind it.
};

/// The whole answer: an array of key, value, key, value ..., or an error.
[[nodiscard]] std::string range_answer(const Store& store, const RangeRequest& request, int version);

void run_scan(RespSession& session, Words words);
void run_range(RespSession& session, Words words);
void run_dbsize(RespSession& session, Words words);
void run_info(RespSession& session, Words words);

}  // namespace kvingest::net
