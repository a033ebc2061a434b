// feeds_table.hpp -- the part of `ingest` that is about feeds: what it costs to parse them, to acknowledge them, to
// have many of them, and how long a line takes until it is durable at half the rate that could be had.
//
// Threads: kvbench's own; the programs are children.
#pragma once

#include "bench/suite.hpp"

namespace kvingest::bench {

/// Of the stores asked for, those that the table is about: null, mmap and lmdb. A row that failed is in the results,
/// with its reason. Fails with: what ended it early.
Result<void> run_feeds_table(Bench& bench);

}  // namespace kvingest::bench
