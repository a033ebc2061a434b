// report.hpp -- report.html: a run as one page that needs nothing else, with a picture for each workload, its table,
// and the command that measures it again.
//
// Pictures are drawn by gnuplot as SVG and put into the page; colours turn around where the reader prefers dark.
//
// Threads: one; gnuplot runs as a child.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "bench/results.hpp"
#include "kvingest/result.hpp"

namespace kvingest::bench {

/// Where gnuplot is on this machine.
[[nodiscard]] std::optional<std::filesystem::path> find_gnuplot();

/// The command that runs one suite as `command` did: "kvbench run --suite a,b --items 3" and "a" give "kvbench a
/// --items 3".
[[nodiscard]] std::string command_of_suite(std::string_view command, std::string_view suite);

/// The page. Files are made in `work_dir`. Fails with: io_error (gnuplot failed, with what it said).
[[nodiscard]] Result<std::string> report_page(const Results& results, const std::filesystem::path& gnuplot,
                                              const std::filesystem::path& work_dir);

}  // namespace kvingest::bench
