// interrupt.hpp -- SIGINT and SIGTERM as a flag, for programs that end their work in order.
//
// Threads: any. Blocking calls return EINTR on the thread that the signal reached; every wait is bounded all the same,
//          because a signal may come just before it.
#pragma once

namespace kvingest {

/// From now on the first SIGINT or SIGTERM sets the flag; the second ends the process as usual.
void catch_interrupts();

[[nodiscard]] bool interrupted() noexcept;

}  // namespace kvingest
