// kvq_read.cpp -- the commands that print what a store holds.
#include <unistd.h>

#include "kvq_settings.hpp"
#include "query/export.hpp"
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

int tail(const Settings& settings) {
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
