// kvq_wide.cpp -- pivot, and plot, which hands the wide table to gnuplot.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/posix.hpp"
#include "kvq_settings.hpp"
#include "query/pivot.hpp"

namespace kvingest::kvq {
namespace {

using query::OpenedStore;
using query::Output;

/// Where files that live for a moment go: TMPDIR, else /tmp.
Result<std::string> temporary_folder() {
  std::error_code error;
  std::string folder = std::filesystem::temp_directory_path(error).string();
  if (error) return fail(error.value(), "the folder for temporary files, which TMPDIR names");
  return folder;
}

Result<query::PivotPlan> plan_of(const Settings& settings) {
  query::PivotPlan plan{.rows = settings.rows, .columns = settings.columns_field, .values = settings.values};
  const auto aggregate = query::parse_aggregate(settings.aggregate);
  KV_TRY(aggregate);
  plan.aggregate = *aggregate;
  const auto form = query::parse_wide_form(settings.json ? "json" : settings.wide_form);
  KV_TRY(form);
  plan.form = *form;
  return plan;
}

int pivot_to(const Settings& settings, const query::PivotPlan& plan, Output& out) {
  return with_store(settings, [&](OpenedStore& opened) {
    const auto selection = selection_of(settings, opened.labels.seq_keys);
    if (!selection) return complain(selection.error(), cli::kUsage);
    const auto done = query::pivot(opened, *selection, plan, out);
    if (!done && done.error().code == Code::invalid_argument) return complain(done.error(), cli::kUsage);
    return exit_code_of(done);
  });
}

/// In single quotes, as gnuplot reads a text without escapes.
std::string in_quotes(std::string_view text) {
  std::string quotes = "'";
  for (const char c : text) quotes += c == '\'' ? std::string("''") : std::string(1, c == '\n' ? ' ' : c);
  return quotes + "'";
}

/// Runs gnuplot on `script`, which comes by a file without a name: a pipe could fill up on both sides.
int run_gnuplot(const std::string& folder, const std::string& script) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return complain(errno_error(errno, "a temporary file in " + folder), cli::kIncomplete);
  const File file(Posix::real(), fd, folder);
  if (const auto written = file.write_at(script, 0); !written) return complain(written.error(), cli::kIncomplete);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
  char name[] = "gnuplot";
  char* const arguments[] = {name, nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return complain({Code::unsupported, 0, "plot needs gnuplot, which is not installed: apt-get install gnuplot-nox"},
                    cli::kIncomplete);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return cli::kDone;
  return complain({Code::failed, 0, "gnuplot failed; what it said stands above"}, cli::kIncomplete);
}

}  // namespace

int pivot(const Settings& settings) {
  const auto plan = plan_of(settings);
  if (!plan) return complain(plan.error(), cli::kUsage);
  Output out(STDOUT_FILENO);
  return pivot_to(settings, *plan, out);
}

int plot(const Settings& settings) {
  auto plan = plan_of(settings);
  if (!plan) return complain(plan.error(), cli::kUsage);
  plan->form = query::WideForm::csv;
  const auto folder = temporary_folder();
  if (!folder) return complain(folder.error(), cli::kIncomplete);
  std::string path = *folder + "/kvq-plot-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return complain(errno_error(errno, "a temporary file " + path), cli::kIncomplete);
  const File file(Posix::real(), fd, path);
  Output table(fd);
  int exit_code = pivot_to(settings, *plan, table);
  if (exit_code == cli::kDone) {
    exit_code = run_gnuplot(
        *folder,
        "set terminal svg size 1200,600 noenhanced background 'white'\nset output " + in_quotes(settings.output) +
            "\nset datafile separator ','\nset datafile missing ''\nset key left top autotitle columnhead\nset grid\n" +
            "stats " + in_quotes(path) + " using 0 nooutput\nset xdata time\nset timefmt " +
            in_quotes(settings.time_form) + "\nset format x '%Y-%m-%d'\nset title " + in_quotes(settings.values) +
            "\nplot for [i=2:STATS_columns] " + in_quotes(path) + " using 1:i with lines\n");
  }
  ::unlink(path.c_str());
  return exit_code;
}

}  // namespace kvingest::kvq
