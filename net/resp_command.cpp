#include "net/resp_command.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "net/resp_session.hpp"
#include "net/resp_store_commands.hpp"
#include "record/text_escape.hpp"

namespace kvingest::net {
namespace {

using enum CommandKind;

void not_supported(RespSession& session, Words words) {
  session.error(
      fmt::format("ERR {} is not supported here: KV.TAIL follows new records, MULTI and SET with NX or XX "
                  "change several or conditionally",
                  words[0]));
}

// Sorted by name. `syntax` is explained in resp_docs.cpp.
constexpr std::array kCommands{
    RespCommand{.name = "auth",
                .kind = session,
                .arity = -2,
                .before_auth = true,
                .flags = "noscript loading stale fast",
                .group = "connection",
                .syntax = "[username:string] password:string",
                .summary = "Says who the client is, by a token.",
                .run_session = [](RespSession& on, Words words) { on.auth(words); }},
    RespCommand{.name = "client",
                .kind = session,
                .arity = -2,
                .flags = "noscript loading stale",
                .group = "connection",
                .syntax = "subcommand:string [argument:string*]",
                .summary = "ID, GETNAME, SETNAME, SETINFO, INFO, LIST and NO-EVICT of this connection.",
                .run_session = [](RespSession& on, Words words) { on.client(words); }},
    RespCommand{.name = "command",
                .kind = session,
                .arity = -1,
                .flags = "loading stale",
                .group = "server",
                .syntax = "[subcommand:string] [name:string*]",
                .summary = "What commands there are: COUNT, LIST, INFO, DOCS.",
                .run_session =
                    [](RespSession& on, Words words) {
                      RespWriter to = on.reply();
                      answer_command(words, to);
                    }},
    RespCommand{.name = "config",
                .kind = session,
                .arity = -2,
                .flags = "admin noscript loading stale",
                .group = "server",
                .syntax = "subcommand:string pattern:string*",
                .summary = "GET shows settings; they are set when kvingest is started.",
                .run_session =
                    [](RespSession& on, Words words) {
                      RespWriter to = on.reply();
                      answer_config(words, on.host().options(), to);
                    }},
    RespCommand{.name = "dbsize",
                .kind = session,
                .arity = 1,
                .flags = "readonly fast",
                .group = "server",
                .summary = "The number of records.",
                .run_session = run_dbsize},
    RespCommand{.name = "del",
                .kind = write,
                .arity = -2,
                .first_key = 1,
                .last_key = -1,
                .key_step = 1,
                .in_transaction = true,
                .flags = "write",
                .group = "generic",
                .syntax = "key:key*",
                .summary = "Erases records; how many there were.",
                .run_records = run_del,
                .check = check_erase},
    RespCommand{.name = "discard",
                .kind = session,
                .arity = 1,
                .in_transaction = true,
                .flags = "noscript loading stale fast",
                .group = "transactions",
                .summary = "Forgets a transaction.",
                .run_session = [](RespSession& on, Words) { on.discard(); }},
    RespCommand{.name = "echo",
                .kind = read,
                .arity = 2,
                .in_transaction = true,
                .flags = "loading stale fast",
                .group = "connection",
                .syntax = "message:string",
                .summary = "The message.",
                .run_records = run_echo},
    RespCommand{.name = "exec",
                .kind = session,
                .arity = 1,
                .in_transaction = true,
                .flags = "noscript loading stale",
                .group = "transactions",
                .summary = "Runs a transaction, all of it or nothing.",
                .run_session = [](RespSession& on, Words) { on.exec(); }},
    RespCommand{.name = "exists",
                .kind = read,
                .arity = -2,
                .first_key = 1,
                .last_key = -1,
                .key_step = 1,
                .in_transaction = true,
                .flags = "readonly fast",
                .group = "generic",
                .syntax = "key:key*",
                .summary = "How many of the keys there are.",
                .run_records = run_exists},
    RespCommand{.name = "flushdb",
                .kind = write,
                .arity = -1,
                .in_transaction = true,
                .flags = "write",
                .group = "server",
                .syntax = "[flush-type:SYNC|ASYNC]",
                .summary = "Erases every record, in one step; only with --allow-flush.",
                .run_records = run_flush,
                .check = check_flush},
    RespCommand{.name = "get",
                .kind = read,
                .arity = 2,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1,
                .in_transaction = true,
                .flags = "readonly fast",
                .group = "string",
                .syntax = "key:key",
                .summary = "The value of a key.",
                .run_records = run_get},
    RespCommand{.name = "getrange",
                .kind = read,
                .arity = 4,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1,
                .in_transaction = true,
                .flags = "readonly",
                .group = "string",
                .syntax = "key:key start:integer end:integer",
                .summary = "A part of a value.",
                .run_records = run_getrange},
    RespCommand{.name = "hello",
                .kind = session,
                .arity = -1,
                .before_auth = true,
                .flags = "noscript loading stale fast",
                .group = "connection",
                .syntax = "[protover:integer] [AUTH auth:string*] [SETNAME clientname:string]",
                .summary = "Chooses the protocol's version, 2 or 3.",
                .run_session = [](RespSession& on, Words words) { on.hello(words); }},
    RespCommand{.name = "info",
                .kind = session,
                .arity = -1,
                .flags = "loading stale",
                .group = "server",
                .syntax = "[section:string*]",
                .summary = "The service, its clients and its store.",
                .run_session = run_info},
    RespCommand{.name = "kv.admin",
                .kind = session,
                .arity = -2,
                .flags = "admin noscript",
                .group = "generic",
                .syntax = "word:string argument:string*",
                .summary = "What kvq's other commands ask a service.",
                .run_session = [](RespSession& on, Words words) { on.admin(words); }},
    RespCommand{.name = "kv.range",
                .kind = session,
                .arity = -3,
                .flags = "readonly",
                .group = "generic",
                .syntax = "from:string to:string [LIMIT count:integer] [order:REV]",
                .summary = "Records in key order, from the first key up to but without the second; '' is no bound.",
                .run_session = run_range},
    RespCommand{.name = "kv.tail",
                .kind = session,
                .arity = -2,
                .flags = "readonly blocking",
                .group = "generic",
                .syntax = "after:string [COUNT count:integer] [BLOCK milliseconds:integer]",
                .summary = "Records that arrived after a number, or $ for now; BLOCK waits for them.",
                .run_session = [](RespSession& on, Words words) { on.tail(words); }},
    RespCommand{.name = "mget",
                .kind = read,
                .arity = -2,
                .first_key = 1,
                .last_key = -1,
                .key_step = 1,
                .in_transaction = true,
                .flags = "readonly fast",
                .group = "string",
                .syntax = "key:key*",
                .summary = "The values of several keys.",
                .run_records = run_mget},
    RespCommand{.name = "mset",
                .kind = write,
                .arity = -3,
                .first_key = 1,
                .last_key = -1,
                .key_step = 2,
                .in_transaction = true,
                .flags = "write denyoom",
                .group = "string",
                .syntax = "data:key-value*",
                .summary = "Puts several records, all or none.",
                .run_records = run_mset,
                .check = check_pairs},
    RespCommand{.name = "multi",
                .kind = session,
                .arity = 1,
                .in_transaction = true,
                .flags = "noscript loading stale fast",
                .group = "transactions",
                .summary = "Begins a transaction.",
                .run_session = [](RespSession& on, Words) { on.multi(); }},
    RespCommand{.name = "ping",
                .kind = read,
                .arity = -1,
                .in_transaction = true,
                .flags = "fast",
                .group = "connection",
                .syntax = "[message:string]",
                .summary = "PONG, or the message.",
                .run_records = run_ping},
    RespCommand{.name = "psubscribe",
                .kind = session,
                .arity = -2,
                .flags = "pubsub noscript loading stale",
                .group = "pubsub",
                .syntax = "pattern:string*",
                .summary = "Refused: see kv.tail.",
                .run_session = not_supported},
    RespCommand{.name = "quit",
                .kind = session,
                .arity = -1,
                .before_auth = true,
                .in_transaction = true,
                .flags = "noscript loading stale fast",
                .group = "connection",
                .summary = "Closes the connection.",
                .run_session = [](RespSession& on, Words) { on.quit(); }},
    RespCommand{.name = "reset",
                .kind = session,
                .arity = 1,
                .before_auth = true,
                .in_transaction = true,
                .flags = "noscript loading stale fast",
                .group = "connection",
                .summary = "Makes the connection as it was at first.",
                .run_session = [](RespSession& on, Words) { on.reset(); }},
    RespCommand{.name = "scan",
                .kind = session,
                .arity = -2,
                .flags = "readonly",
                .group = "generic",
                .syntax = "cursor:integer [MATCH pattern:pattern] [COUNT count:integer] [TYPE type:string]",
                .summary = "Keys, some at a time.",
                .run_session = run_scan},
    RespCommand{.name = "select",
                .kind = read,
                .arity = 2,
                .in_transaction = true,
                .flags = "loading stale fast",
                .group = "connection",
                .syntax = "index:integer",
                .summary = "There is database 0 alone.",
                .run_records = run_select},
    RespCommand{.name = "set",
                .kind = write,
                .arity = -3,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1,
                .in_transaction = true,
                .flags = "write denyoom",
                .group = "string",
                .syntax = "key:key value:string [condition:NX|XX] [get:GET]",
                .summary = "Puts a record; the answer comes when it is durable.",
                .run_records = run_set,
                .check = check_set},
    RespCommand{.name = "setnx",
                .kind = write,
                .arity = 3,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1,
                .in_transaction = true,
                .flags = "write denyoom fast",
                .group = "string",
                .syntax = "key:key value:string",
                .summary = "Puts a record if there is none.",
                .run_records = run_setnx,
                .check = check_pair},
    RespCommand{.name = "strlen",
                .kind = read,
                .arity = 2,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1,
                .in_transaction = true,
                .flags = "readonly fast",
                .group = "string",
                .syntax = "key:key",
                .summary = "The length of a value.",
                .run_records = run_strlen},
    RespCommand{.name = "subscribe",
                .kind = session,
                .arity = -2,
                .flags = "pubsub noscript loading stale",
                .group = "pubsub",
                .syntax = "channel:string*",
                .summary = "Refused: see kv.tail.",
                .run_session = not_supported},
    RespCommand{.name = "type",
                .kind = read,
                .arity = 2,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1,
                .in_transaction = true,
                .flags = "readonly fast",
                .group = "generic",
                .syntax = "key:key",
                .summary = "string, or none.",
                .run_records = run_type},
    RespCommand{.name = "watch",
                .kind = session,
                .arity = -2,
                .in_transaction = true,
                .flags = "noscript loading stale fast",
                .group = "transactions",
                .syntax = "key:key*",
                .summary = "Refused: see set.",
                .run_session = not_supported},
};

std::unordered_map<std::string_view, const RespCommand*> by_name() {
  std::unordered_map<std::string_view, const RespCommand*> names;
  for (const RespCommand& command : kCommands) names.emplace(command.name, &command);
  return names;
}

}  // namespace

std::span<const RespCommand> resp_commands() noexcept {
  return kCommands;
}

const RespCommand* find_command(std::string_view name) noexcept {
  static const auto names = by_name();
  constexpr std::size_t kNameBytesMax = 16;
  if (name.size() > kNameBytesMax) return nullptr;
  char lower[kNameBytesMax];
  std::transform(name.begin(), name.end(), lower,
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  const auto at = names.find(std::string_view(lower, name.size()));
  return at == names.end() ? nullptr : at->second;
}

std::string lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return lower;
}

bool same_word(std::string_view word, std::string_view lower) noexcept {
  return std::equal(word.begin(), word.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a | 0x20) : a) == b; });
}

bool parse_integer(std::string_view word, std::int64_t& value) noexcept {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return !word.empty() && error == std::errc() && end == word.data() + word.size();
}

std::string range_key(std::string_view word, bool seq_keys) {
  std::int64_t number = 0;
  if (seq_keys && parse_integer(word, number) && number >= 0) return key_of_seq(static_cast<std::uint64_t>(number));
  return std::string(word);
}

std::string error_text(const Error& error) {
  return fmt::format("ERR {}: {}", to_string(error.code), error.text);
}

}  // namespace kvingest::net
