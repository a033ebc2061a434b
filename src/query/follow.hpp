// follow.hpp -- kvq tail -f: records of a running service as they arrive.
//
// Threads: one.
#pragma once

#include "kvingest/function_ref.hpp"
#include "query/output.hpp"
#include "query/resp_client.hpp"

namespace kvingest::query {

/// Prints the last `count` rows, then each that arrives, until `go_on` says no (it is asked once a second) or nobody
/// reads on. Fails with: unsupported (keys do not begin with an arrival number), io_error.
Result<void> follow(const Service& service, std::uint64_t count, Output& out, FunctionRef<bool()> go_on);

}  // namespace kvingest::query
