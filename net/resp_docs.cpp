// COMMAND: what the commands are, so that clients can complete and hint.
//
// The syntax in the table is words parted by blanks. Each is `name:type`; `[...]` around it makes it optional, `*`
// behind it repeats it, `TOKEN name:type` in brackets has a word of its own in front. A type in capitals is a choice
// of words: `[condition:NX|XX]`.
#include <algorithm>
#include <vector>

#include "net/resp_command.hpp"

namespace kvingest::net {
namespace {

struct Argument {
  std::string_view name;
  std::string_view type;
  std::string_view token;
  bool optional = false;
  bool multiple = false;
};

std::string_view take_word(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return word;
}

std::vector<Argument> parse_syntax(std::string_view syntax) {
  std::vector<Argument> arguments;
  while (!syntax.empty()) {
    Argument argument;
    argument.optional = syntax.front() == '[';
    std::string_view part;
    if (argument.optional) {
      syntax.remove_prefix(1);
      part = take_word(syntax, ']');
      if (syntax.starts_with(' ')) syntax.remove_prefix(1);
    } else {
      part = take_word(syntax, ' ');
    }
    if (part.find(' ') != std::string_view::npos) argument.token = take_word(part, ' ');
    argument.multiple = part.ends_with('*');
    if (argument.multiple) part.remove_suffix(1);
    argument.name = take_word(part, ':');
    argument.type = part;
    arguments.push_back(argument);
  }
  return arguments;
}

bool is_choice(std::string_view type) noexcept {
  return !type.empty() && type.front() >= 'A' && type.front() <= 'Z';
}

void answer_choice(std::string_view word, RespWriter& to) {
  to.map(3);
  to.bulk("name");
  to.bulk(lower_case(word));
  to.bulk("type");
  to.bulk("pure-token");
  to.bulk("token");
  to.bulk(word);
}

void answer_argument(const Argument& argument, RespWriter& to) {
  const bool choice = is_choice(argument.type);
  const bool one_token = choice && argument.type.find('|') == std::string_view::npos;
  const bool has_flags = argument.optional || argument.multiple;
  const bool has_token = one_token || !argument.token.empty();
  const bool has_keys = argument.type == "key";
  to.map(2U + (has_keys ? 1 : 0) + (has_token ? 1 : 0) + (has_flags ? 1 : 0) + (choice && !one_token ? 1 : 0));
  to.bulk("name");
  to.bulk(argument.name);
  to.bulk("type");
  to.bulk(!choice ? argument.type == "key-value" ? "string" : argument.type : one_token ? "pure-token" : "oneof");
  if (has_keys) {
    to.bulk("key_spec_index");
    to.integer(0);
  }
  if (has_token) {
    to.bulk("token");
    to.bulk(one_token ? argument.type : argument.token);
  }
  if (has_flags) {
    to.bulk("flags");
    to.set((argument.optional ? 1U : 0U) + (argument.multiple ? 1U : 0U));
    if (argument.optional) to.simple("optional");
    if (argument.multiple) to.simple("multiple");
  }
  if (!choice || one_token) return;
  to.bulk("arguments");
  to.array(1 + static_cast<std::size_t>(std::ranges::count(argument.type, '|')));
  for (std::string_view rest = argument.type; !rest.empty();) answer_choice(take_word(rest, '|'), to);
}

void answer_docs(const RespCommand& command, RespWriter& to) {
  const std::vector<Argument> arguments = parse_syntax(command.syntax);
  to.bulk(command.name);
  to.map(arguments.empty() ? 3 : 4);
  to.bulk("summary");
  to.bulk(command.summary);
  to.bulk("since");
  to.bulk("1.0.0");
  to.bulk("group");
  to.bulk(command.group);
  if (arguments.empty()) return;
  to.bulk("arguments");
  to.array(arguments.size());
  for (const Argument& argument : arguments) answer_argument(argument, to);
}

std::vector<std::string_view> flags_of(const RespCommand& command) {
  std::vector<std::string_view> flags;
  for (std::string_view rest = command.flags; !rest.empty();) flags.push_back(take_word(rest, ' '));
  return flags;
}

void answer_info(const RespCommand& command, RespWriter& to) {
  to.array(10);
  to.bulk(command.name);
  to.integer(command.arity);
  const auto flags = flags_of(command);
  to.set(flags.size());
  for (const std::string_view flag : flags) to.simple(flag);
  to.integer(command.first_key);
  to.integer(command.last_key);
  to.integer(command.key_step);
  for (int i = 0; i < 4; ++i) to.array(0);  // Categories, tips, key specifications and subcommands: none.
}

}  // namespace

void answer_command(Words words, RespWriter& to) {
  const auto all = resp_commands();
  if (words.size() == 1) {
    to.array(all.size());
    for (const RespCommand& command : all) answer_info(command, to);
    return;
  }
  const std::string word = lower_case(words[1]);
  const Words names = words.subspan(2);
  if (word == "count" && names.empty()) return to.count(all.size());
  if (word == "list" && names.empty()) {
    to.array(all.size());
    for (const RespCommand& command : all) to.bulk(command.name);
    return;
  }
  std::vector<const RespCommand*> wanted;
  for (const std::string_view name : names) wanted.push_back(find_command(name));
  for (std::size_t i = 0; names.empty() && i < all.size(); ++i) wanted.push_back(&all[i]);
  if (word == "info") {
    to.array(wanted.size());
    for (const RespCommand* command : wanted) command != nullptr ? answer_info(*command, to) : to.null_array();
    return;
  }
  if (word == "docs") {
    std::erase(wanted, nullptr);
    to.map(wanted.size());
    for (const RespCommand* command : wanted) answer_docs(*command, to);
    return;
  }
  to.error(fmt::format("ERR unknown subcommand '{}'. Try COMMAND COUNT, LIST, INFO or DOCS.", words[1]));
}

}  // namespace kvingest::net
