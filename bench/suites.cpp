#include <array>

#include "bench/suite.hpp"

namespace kvingest::bench {
namespace {

Needs no_needs(const Settings&) {
  return {};
}

constexpr std::array kSuites = {
    Suite{"quick", "all stores in a minute and a half: smaller runs of ingest and dbbench", true, quick_needs,
          run_quick_suite, false},
    Suite{"ingest", "messages per second from the socket into each store", true, ingest_needs, run_ingest_suite},
    Suite{"dbbench", "reading and overwriting on each store, in this process", true, dbbench_needs, run_dbbench_suite},
    Suite{"ycsb", "YCSB's workloads A to F on each store, in closed and in open loops", true, ycsb_needs,
          run_ycsb_suite},
    Suite{"stores", "the engines beside what bounds them: their own interfaces, each other, plain files", true,
          stores_needs, run_stores_suite},
    Suite{"codec", "arrays of integers to bytes and back, beside protobuf and streamvbyte", false, codec_needs,
          run_codec_suite},
    Suite{"seed", "the experiments that the project began with: integers, files, pages, maps, calls", false, seed_needs,
          run_seed_suite},
    Suite{"pool", "what running a body on several threads costs, beside OpenMP and new threads", false, no_needs,
          run_pool_suite},
    Suite{"net", "receiving and throwing away, and what codecs make of it; streams of any length", false, net_needs,
          run_net_suite},
    Suite{"tree", "binary trees to bytes and back, beside walking and building them", false, tree_needs,
          run_tree_suite},
};

}  // namespace

std::span<const Suite> suites() noexcept {
  return kSuites;
}

}  // namespace kvingest::bench
