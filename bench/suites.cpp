#include <array>

#include "bench/suite.hpp"

namespace kvingest::bench {
namespace {

constexpr std::array kSuites = {
    Suite{"ingest", "messages per second from the socket into each store", run_ingest_suite},
};

}  // namespace

std::span<const Suite> suites() noexcept {
  return kSuites;
}

}  // namespace kvingest::bench
