// kvq_store.cpp -- the commands about a store as a whole: how it is, copies of it, its housekeeping.
#include <unistd.h>

#include "base/interrupt.hpp"
#include "base/json_writer.hpp"
#include "base/progress.hpp"
#include "kvq_settings.hpp"
#include "query/audit.hpp"
#include "query/convert.hpp"
#include "query/erase.hpp"
#include "query/import.hpp"
#include "query/rejects.hpp"
#include "query/repair.hpp"
#include "query/store_commands.hpp"

namespace kvingest::kvq {
namespace {

using query::OpenedStore;
using query::Output;

/// "NAME[,key=value...]:DIR".
struct Target {
  StoreSpec spec;
  std::string dir;
};

Result<Target> parse_target(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) {
    return fail(Code::invalid_argument, "--to '{}': write NAME:DIR, for example mmap:kvdata-mmap", text);
  }
  auto spec = parse_store_spec(text.substr(0, colon));
  KV_TRY(spec);
  if (!spec->engine->persistent) {
    return fail(Code::invalid_argument, "--to '{}': store {} keeps nothing", text, spec->engine->name);
  }
  return Target{*std::move(spec), std::string(text.substr(colon + 1))};
}

std::FILE* progress_place(const Settings& settings) {
  return settings.quiet ? nullptr : stderr;
}

Result<void> go_on(Progress& progress, std::uint64_t entries) {
  progress.update(entries);
  if (interrupted()) return fail(Code::busy, "interrupted; the same command goes on from here");
  return {};
}

void print_report(const query::ConvertReport& report, const Settings& settings, Output& out) {
  if (settings.json) {
    JsonWriter json;
    json.begin_object().field("entries", report.digest.entries).field("copied", report.copied);
    json.field("resumed", report.resumed).field("digest", fmt::format("{:016x}", report.digest.sum)).end_object();
    out.text() += json.text() + "\n";
  } else {
    out.text() +=
        fmt::format("{}: {} entries, {} copied{}, digest {:016x} of both\n", settings.target, report.digest.entries,
                    report.copied, report.resumed ? " after an interruption" : "", report.digest.sum);
  }
}

int convert_into(const Settings& settings, const OpenedStore& source, const Target& target) {
  auto opened = open_store(target.spec, {.dir = target.dir, .labels = source.marker.labels, .notice = print_notice});
  if (!opened) return complain(opened.error(), cli::kStoreUnavailable);
  catch_interrupts();
  const auto total = source.store->count();
  Progress progress(progress_place(settings), "converted", total ? *total : 0);
  const auto report =
      query::convert(*source.store, **opened, [&](std::uint64_t entries) { return go_on(progress, entries); });
  progress.clear();
  if (!report) return complain(report.error(), interrupted() ? cli::kInterrupted : cli::kIncomplete);
  if (const auto closed = (*opened)->close(); !closed) return complain(closed.error(), cli::kIncomplete);
  Output out(STDOUT_FILENO);
  print_report(*report, settings, out);
  return exit_code_of(out.flush());
}

int replay(const Settings& settings) {
  return with_store_alone(settings, [&](OpenedStore& opened) {
    auto options = query::record_options_of(opened.marker);
    if (!options) return complain(options.error(), cli::kIncomplete);
    if (settings.columns) {
      auto columns = split_columns(*settings.columns);
      if (!columns) return complain(columns.error(), cli::kUsage);
      options->columns = *std::move(columns);
    }
    const auto plan = RecordPlan::compile(*options);
    if (!plan) return complain(plan.error(), cli::kUsage);
    Output out(STDOUT_FILENO);
    const int code = exit_code_of(query::print_replay(*opened.store, *plan, settings.form(), out));
    const auto closed = opened.store->close();
    return closed ? code : complain(closed.error(), cli::kIncomplete);
  });
}

}  // namespace

int stats(const Settings& settings) {
  return with_store(settings, [&](OpenedStore& opened) {
    Output out(STDOUT_FILENO);
    return exit_code_of(query::print_stats(opened, settings.form(), out));
  });
}

int verify(const Settings& settings) {
  const auto opened = open_store_of(settings, false);
  if (!opened) {
    // Damage that shows when the store is opened is an answer to this question.
    return complain(opened.error(), opened.error().code == Code::corrupt ? cli::kIncomplete : cli::kStoreUnavailable);
  }
  Output out(STDOUT_FILENO);
  return exit_code_of(query::print_verify(*opened->store, settings.form(), out));
}

int repair(const Settings& settings) {
  if (settings.target.empty())
    return complain({Code::invalid_argument, 0, "repair: say where the new store goes: --to TARGET"}, cli::kUsage);
  Output out(STDOUT_FILENO);
  const auto done = query::print_repair({settings.dir, settings.target}, print_notice, settings.form(), out);
  if (done) return cli::kDone;
  const Code code = done.error().code;
  const bool untouched = code == Code::locked || code == Code::unsupported || code == Code::invalid_argument;
  return complain(done.error(), untouched ? cli::kStoreUnavailable : cli::kIncomplete);
}

int audit(const Settings& settings) {
  return with_store(settings, [&](OpenedStore& opened) {
    Output out(STDOUT_FILENO);
    return exit_code_of(query::print_audit(opened, settings.form(), out));
  });
}

int rejects(const Settings& settings) {
  if (settings.action == "replay") return replay(settings);
  const bool list = settings.action == "list";
  if (!list && settings.action != "export") {
    return complain({Code::invalid_argument, 0, fmt::format("rejects '{}': list, export or replay", settings.action)},
                    cli::kUsage);
  }
  return with_store(settings, [&](OpenedStore& opened) {
    Output out(STDOUT_FILENO);
    return exit_code_of(list ? query::list_rejects(*opened.store, settings.form(), out)
                             : query::export_rejects(*opened.store, out));
  });
}

int erase(const Settings& settings) {
  if (!settings.prefix && !settings.from && !settings.to) {
    return complain({Code::invalid_argument, 0, "delete: say which records: --prefix, --from or --to"}, cli::kUsage);
  }
  return with_writable_store(settings, [&](OpenedStore& opened) {
    const auto selection = selection_of(settings, opened.labels.seq_keys);
    if (!selection) return complain(selection.error(), cli::kUsage);
    Output out(STDOUT_FILENO);
    const int code = exit_code_of(query::print_erased(opened, *selection, settings.form(), out));
    const auto closed = opened.store->close();
    return closed ? code : complain(closed.error(), cli::kIncomplete);
  });
}

int import_records(const Settings& settings) {
  const auto form = query::parse_import_form(settings.import_form);
  if (!form) return complain(form.error(), cli::kUsage);
  return with_store_alone(settings, [&](OpenedStore& opened) {
    Output out(STDOUT_FILENO);
    const int code = exit_code_of(query::print_import(opened, settings.input, *form, settings.form(), out));
    const auto closed = opened.store->close();
    return closed ? code : complain(closed.error(), cli::kIncomplete);
  });
}

int convert(const Settings& settings) {
  const auto target = parse_target(settings.target);
  if (!target) return complain(target.error(), cli::kUsage);
  return with_store(settings, [&](OpenedStore& source) { return convert_into(settings, source, *target); });
}

int backup(const Settings& settings) {
  return with_store(settings, [&](OpenedStore& opened) {
    Output out(STDOUT_FILENO);
    return exit_code_of(query::print_backup(opened, settings.target, settings.form(), out));
  });
}

int compact(const Settings& settings) {
  return with_writable_store(settings, [&](OpenedStore& opened) {
    Output out(STDOUT_FILENO);
    return exit_code_of(query::print_compact(opened, settings.dir, settings.form(), out));
  });
}

}  // namespace kvingest::kvq
