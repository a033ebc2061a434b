// service_manager.hpp -- tells systemd how the service is doing: sd_notify(3)'s protocol, which is one datagram.
//
// Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace kvingest {

/// Sends `state` ("READY=1") to the manager's socket, the value of NOTIFY_SOCKET. Empty: there is no manager. What
/// cannot be sent is dropped: a service that runs is not stopped by its monitor.
void notify_service_manager(const std::string& socket_path, std::string_view state) noexcept;

}  // namespace kvingest
