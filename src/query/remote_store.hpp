// remote_store.hpp -- the store of a running service, seen through RESP (KV.ADMIN), so that the commands of kvq work on
// it as on a directory.
//
// It reads all there is, and erases; a batch that puts is refused, since numbers are the service's to give.
//
// Threads:  one. Lifetime: values and keys passed to a visitor are valid until it returns.
// Errors:   those of the store, as the service answers them; io_error where the connection is lost.
#pragma once

#include <memory>

#include "query/opened_store.hpp"
#include "query/resp_client.hpp"

namespace kvingest::query {

/// Fails with: io_error, what the service answers.
[[nodiscard]] Result<OpenedStore> open_remote(const Service& service);

/// The service that has the store in `dir` in use, through its socket there; nothing where there is no such socket.
[[nodiscard]] std::optional<Service> service_in(const std::filesystem::path& dir);

}  // namespace kvingest::query
