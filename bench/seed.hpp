// seed.hpp -- the experiments that the project began with, each a part of the suite `seed`, with today's methods.
//
// Threads: the calling one; `pages` starts a second that samples, and a process that reads along; `sender` runs
//          kvfeed and receivers as children.
#pragma once

#include "bench/suite.hpp"

namespace kvingest::bench {

/// Set, update and get on ten integers in memory: containers, and stores through their interface.
Result<void> run_seed_intstore(Bench& bench);
/// A record to its place in a file, in every way that there is to do so.
Result<void> run_seed_seekwrite(Bench& bench);
/// What a pause of a microsecond after each send does to a feed.
Result<void> run_seed_sender(Bench& bench);
/// What a mapping and the page cache do.
Result<void> run_seed_pages(Bench& bench);
/// Trees against hash tables, by share of reads and size.
Result<void> run_seed_maps(Bench& bench);
/// What calls and objects of C++ cost.
Result<void> run_seed_calls(Bench& bench);

/// How many cycles of the time stamp counter a nanosecond has; 0 where there is no such counter.
[[nodiscard]] double cycles_per_ns();

}  // namespace kvingest::bench
