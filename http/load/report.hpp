// report.hpp -- plans and reports as people and programs read them.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "http/load/load_run.hpp"
#include "http/load/plan.hpp"

namespace kvingest::fetch {

[[nodiscard]] std::string plan_text(const Plan& plan);
[[nodiscard]] std::string plan_json(const Plan& plan);
[[nodiscard]] std::string report_text(const LoadReport& report);
[[nodiscard]] std::string report_json(const LoadReport& report);

/// A file of jobs that asks for the items which are not complete, and for nothing else; empty where there are none.
/// `report` is that of `plan`.
[[nodiscard]] std::string failed_jobs(const Plan& plan, const LoadReport& report);

}  // namespace kvingest::fetch
