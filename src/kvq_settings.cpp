#include "kvq_settings.hpp"

#include "query/remote_store.hpp"
#include "record/text_escape.hpp"

namespace kvingest::kvq {
namespace {

/// Undoes the escapes of an optional argument.
Result<std::optional<std::string>> bound(const std::optional<std::string>& text, bool seq_keys) {
  if (!text) return std::nullopt;
  auto key = key_from_text(*text, seq_keys);
  KV_TRY(key);
  return *std::move(key);
}

int with(Result<query::OpenedStore> opened, FunctionRef<int(query::OpenedStore& opened)> work) {
  return opened ? work(*opened) : complain(opened.error(), cli::kStoreUnavailable);
}

}  // namespace

int complain(const Error& error, int exit_code) {
  return cli::print({.exit_code = exit_code, .out = {}, .err = fmt::format("kvq: {}\n", error.text)});
}

void print_notice(std::string_view text) {
  cli::print({.exit_code = cli::kDone, .out = {}, .err = fmt::format("kvq: note: {}\n", text)});
}

int exit_code_of(const Result<void>& done) {
  return done ? cli::kDone : complain(done.error(), cli::kIncomplete);
}

int exit_code_of(const Result<bool>& done) {
  if (!done) return complain(done.error(), cli::kIncomplete);
  return *done ? cli::kDone : cli::kIncomplete;
}

Result<query::Service> service_of(const Settings& settings) {
  if (settings.connect) {
    auto endpoint = net::parse_endpoint(*settings.connect);
    if (!endpoint) return fail(std::move(endpoint).error(), "--connect");
    return query::Service{*std::move(endpoint), settings.token.value_or("")};
  }
  auto service = query::service_in(settings.dir);
  if (service) return *std::move(service);
  return fail(Code::invalid_argument, "no kvingest serves {}; start it, or say --connect HOST:PORT", settings.dir);
}

Result<query::OpenedStore> open_store_of(const Settings& settings, bool for_writing) {
  if (settings.connect) {
    const auto service = service_of(settings);
    KV_TRY(service);
    return query::open_remote(*service);
  }
  auto opened = for_writing ? query::open_for_writing(settings.dir, print_notice)
                            : query::open_for_reading(settings.dir, print_notice);
  if (opened || opened.error().code != Code::locked) return opened;
  const auto service = query::service_in(settings.dir);
  if (!service) return opened;
  auto remote = query::open_remote(*service);
  return remote ? std::move(remote) : std::move(opened);
}

int with_store(const Settings& settings, FunctionRef<int(query::OpenedStore& opened)> work) {
  return with(open_store_of(settings, false), work);
}

int with_writable_store(const Settings& settings, FunctionRef<int(query::OpenedStore& opened)> work) {
  return with(open_store_of(settings, true), work);
}

int with_store_alone(const Settings& settings, FunctionRef<int(query::OpenedStore& opened)> work) {
  if (settings.connect) {
    return complain({Code::invalid_argument, 0, "this needs the store itself: stop its service, and say --dir"},
                    cli::kUsage);
  }
  return with(query::open_for_writing(settings.dir, print_notice), work);
}

Result<query::Selection> selection_of(const Settings& settings, bool seq_keys) {
  auto prefix = bound(settings.prefix, false);
  KV_TRY(prefix);
  auto from = bound(settings.from, seq_keys);
  KV_TRY(from);
  auto to = bound(settings.to, seq_keys);
  KV_TRY(to);
  query::Selection selection = query::select(*std::move(prefix), *std::move(from), *std::move(to));
  selection.reverse = settings.reverse;
  if (settings.limit) selection.limit = *settings.limit;
  return selection;
}

}  // namespace kvingest::kvq
