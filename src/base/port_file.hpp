// port_file.hpp -- tells other programs where this one listens: a line `NAME HOST:PORT` for each listener.
//
// Threads: pure but for the file.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "kvingest/result.hpp"

namespace kvingest {

struct ListenerPlace {
  std::string name;     ///< "feed", "resp" or "http".
  std::string address;  ///< "127.0.0.1:40123".
};

/// Writes `path` under another name and renames it, so that a reader sees all lines or no file. It is not synced: after
/// a crash of the machine nobody listens.
/// Fails with: io_error, no_space.
Result<void> write_port_file(const std::filesystem::path& path, std::span<const ListenerPlace> listeners);

}  // namespace kvingest
