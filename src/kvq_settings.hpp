// kvq_settings.hpp -- what the commands of kvq share: their settings, and how they end.
//
// Threads: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/cli.hpp"
#include "query/opened_store.hpp"
#include "query/output.hpp"
#include "query/pages.hpp"
#include "query/resp_client.hpp"
#include "query/rows.hpp"

namespace kvingest::kvq {

struct Settings {
  std::string dir = "kvdata";
  std::optional<std::string> connect;
  std::optional<std::string> token;
  bool follow = false;  // tail
  bool json = false;
  bool quiet = false;
  std::string key;                    // get
  std::optional<std::string> prefix;  // scan, export
  std::optional<std::string> from;
  std::optional<std::string> to;
  std::optional<std::uint64_t> limit;
  bool reverse = false;
  std::uint64_t tail_count = 10;
  std::string export_form = "text";
  std::string target;  // backup, convert, repair
  std::string action;  // rejects
  std::string input;   // import
  std::string import_form = "text";
  std::optional<std::string> columns;  // rejects replay
  std::string rows = "date";           // pivot, plot
  std::string columns_field = "symbol";
  std::string values = "close";
  std::string aggregate = "last";
  std::string wide_form = "csv";
  std::string output;  // plot
  std::string time_form = "%Y-%m-%d";

  [[nodiscard]] query::RowForm form() const { return json ? query::RowForm::json : query::RowForm::text; }
};

/// Says what went wrong and returns `exit_code`.
int complain(const Error& error, int exit_code);
/// A sentence that is no failure, on stderr.
void print_notice(std::string_view text);

/// kDone, or complains and returns kIncomplete.
int exit_code_of(const Result<void>& done);
/// kDone for true; kIncomplete for false, and for a failure, which is complained about.
int exit_code_of(const Result<bool>& done);

/// Opens the store for reading or writing and passes it to `work`, which returns the exit code; kStoreUnavailable where
/// it cannot be opened. A store in use is asked for through the service that has it, as is that of --connect.
/// The service that --connect names, or that has the store in --dir in use. Fails with: invalid_argument.
[[nodiscard]] Result<query::Service> service_of(const Settings& settings);
[[nodiscard]] Result<query::OpenedStore> open_store_of(const Settings& settings, bool for_writing);
int with_store(const Settings& settings, FunctionRef<int(query::OpenedStore& opened)> work);
int with_writable_store(const Settings& settings, FunctionRef<int(query::OpenedStore& opened)> work);
/// The same for what gives numbers and rejects out: a running service does that by itself, so nobody may have it open.
int with_store_alone(const Settings& settings, FunctionRef<int(query::OpenedStore& opened)> work);

/// The keys that --prefix, --from, --to, --limit and --reverse name. Fails with: invalid_argument.
[[nodiscard]] Result<query::Selection> selection_of(const Settings& settings, bool seq_keys);

// The commands: each returns the exit code.
int count(const Settings& settings);
int get(const Settings& settings);
int scan(const Settings& settings);
int tail(const Settings& settings);
int export_records(const Settings& settings);
int pivot(const Settings& settings);
int plot(const Settings& settings);
int stats(const Settings& settings);
int verify(const Settings& settings);
int repair(const Settings& settings);
int audit(const Settings& settings);
int rejects(const Settings& settings);
int erase(const Settings& settings);
int import_records(const Settings& settings);
int convert(const Settings& settings);
int backup(const Settings& settings);
int compact(const Settings& settings);

}  // namespace kvingest::kvq
