// thread.hpp -- names, CPUs and pinning of threads.
//
// CPUs are those of the affinity mask: what a container or taskset took away does not exist for us.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest {

/// The CPUs this process may run on, rising.
[[nodiscard]] Result<std::vector<int>> allowed_cpus();

/// "0-3,8" for {0, 1, 2, 3, 8}.
[[nodiscard]] std::string format_cpus(const std::vector<int>& cpus);

/// Pins the calling thread to `cpu` and reads the pin back from the system.
/// Fails with: invalid_argument (outside the mask; the text lists the valid ones), io_error (it did not take).
Result<void> pin_this_thread(int cpu);

/// Names the calling thread, as ps and top show it; at most 15 bytes are kept.
void name_this_thread(std::string_view name) noexcept;

}  // namespace kvingest
