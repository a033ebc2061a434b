// kvq_read.cpp -- the commands that print what a store holds.
#include <unistd.h>

#include "base/interrupt.hpp"
#include "kvq_settings.hpp"
#include "query/export.hpp"
#include "query/follow.hpp"
#include "query/read_commands.hpp"
#include "record/text_escape.hpp"

namespace kvingest::kvq {

using query::OpenedStore;
using query::Output;

int count(const Settings& settings) {
  return with_store(settings, [&](OpenedStore& opened) {
    Output out(STDOUT_FILENO);
    return exit_code_of(query::print_count(*opened.store, settings.form(), out));
  });
}

int get(const Settings& settings) {
  return with_store(settings, [&](OpenedStore& opened) {
    const bool seq_keys = opened.labels.seq_keys;
    const auto key = key_from_text(settings.key, seq_keys);
    if (!key) return complain(key.error(), cli::kUsage);
    Output out(STDOUT_FILENO);
    return exit_code_of(query::print_value(*opened.store, *key, seq_keys, settings.form(), out));
  });
}

int scan(const Settings& settings) {
  return with_store(settings, [&](OpenedStore& opened) {
    const bool seq_keys = opened.labels.seq_keys;
    const auto selection = selection_of(settings, seq_keys);
    if (!selection) return complain(selection.error(), cli::kUsage);
    Output out(STDOUT_FILENO);
    return exit_code_of(query::print_rows(*opened.store, *selection, seq_keys, settings.form(), out));
  });
}

namespace {

int follow(const Settings& settings) {
  if (settings.json) {
    return complain({Code::invalid_argument, 0, "tail --follow prints lines without end: leave out --json"},
                    cli::kUsage);
  }
  const auto service = service_of(settings);
  if (!service) return complain(service.error(), cli::kStoreUnavailable);
  catch_interrupts();
  Output out(STDOUT_FILENO);
  const auto done = query::follow(*service, settings.tail_count, out, [] { return !interrupted(); });
  return done && interrupted() ? cli::kInterrupted : exit_code_of(done);
}

}  // namespace

int tail(const Settings& settings) {
  if (settings.follow) return follow(settings);
  return with_store(settings, [&](OpenedStore& opened) {
    Output out(STDOUT_FILENO);
    const bool seq_keys = opened.labels.seq_keys;
    return exit_code_of(query::print_tail(*opened.store, settings.tail_count, seq_keys, settings.form(), out));
  });
}

int export_records(const Settings& settings) {
  const auto form = query::parse_export_form(settings.json ? "json" : settings.export_form);
  if (!form) return complain(form.error(), cli::kUsage);
  return with_store(settings, [&](OpenedStore& opened) {
    const auto selection = selection_of(settings, opened.labels.seq_keys);
    if (!selection) return complain(selection.error(), cli::kUsage);
    Output out(STDOUT_FILENO);
    return exit_code_of(query::export_records(opened, *selection, *form, out));
  });
}

}  // namespace kvingest::kvq
