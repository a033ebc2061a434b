// probe.hpp -- the machine's own limits, measured in well under two seconds and kept with every run, so that a figure
// can be read against what is possible here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "bench/settings.hpp"
#include "kvingest/result.hpp"

namespace kvingest::bench {

struct ProbeFigures {
  double timer_ns = 0;        ///< One reading of the steady clock.
  double syscall_ns = 0;      ///< The cheapest system call.
  double thread_us = 0;       ///< Creating a thread and joining it.
  double memcpy_gb_s = 0;     ///< Copying 64 MiB, beyond the caches.
  double loopback_us = 0;     ///< Median round trip of one byte over TCP between two threads.
  double sync_4k_us = 0;      ///< Median of writing 4 KiB to a file's end and fdatasync.
  double sync_4k_p99_us = 0;  ///< 99th percentile of the same.
  double sync_1m_mb_s = 0;    ///< Median rate of writing 1 MiB to a file's end and fdatasync.
};

/// `dir` is where files are written for a moment. Fails with: io_error, no_space.
[[nodiscard]] Result<ProbeFigures> probe_machine(const std::filesystem::path& dir, const Placement& placement);

/// The times in microseconds of appending `bytes` to a new file and syncing it, `times` times; the file is removed.
[[nodiscard]] Result<std::vector<double>> measure_syncs(const std::filesystem::path& path, std::size_t bytes,
                                                        int times);

void write_probe(JsonWriter& json, const ProbeFigures& figures);
[[nodiscard]] std::string probe_text(const ProbeFigures& figures);

}  // namespace kvingest::bench
