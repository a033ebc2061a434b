// kvingest_options.hpp -- the command line of kvingest, checked and turned into what the service takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/cli.hpp"
#include "service/ingest_service.hpp"

namespace kvingest {

struct KvingestOptions {
  ServiceOptions service;
  std::string durability;  ///< As asked: "disk", "interval:1s".
  std::string port_file;
  bool json = false;
  bool quiet = false;
  std::optional<std::uint64_t> demo_messages;
  std::optional<int> demo_feed_cpu;
};

/// What to run, or how to end at once.
[[nodiscard]] std::variant<KvingestOptions, cli::Ending> read_options(int argc, const char* const* argv,
                                                                      const char* const* environment);

}  // namespace kvingest
