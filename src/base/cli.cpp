#include "base/cli.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/cli_arguments.hpp"
#include "base/cli_reference.hpp"
#include "base/nearest.hpp"

namespace kvingest::cli {
namespace {

std::optional<std::string_view> environment_value(const char* const* environment, const std::string& name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

/// Gives `values` to the option; `from` names where they came from.
Result<void> set(const Option& option, const std::vector<std::string>& values, const std::string& from) {
  if (option.kind != Option::Kind::list && values.size() != 1)
    return fail(Code::invalid_argument, "{}: one value is expected, not {}", from, values.size());
  if (option.clear) option.clear();
  for (const std::string& value : values) {
    // Named alone: CLI11 gives an empty value, a file or the environment says true.
    const bool alone = option.alone && (value.empty() || value == "true");
    if (auto done = option.set(alone ? *option.alone : value); !done) return fail(done.error(), "{}", from);
  }
  return {};
}

}  // namespace

std::string did_you_mean(std::string_view given, const std::vector<std::string_view>& known, std::string_view dashes) {
  const std::string_view nearest = nearest_name(given, known);
  return nearest.empty() ? "" : fmt::format("; did you mean {}{}?", dashes, nearest);
}

std::string_view program_version() noexcept {
  return KVINGEST_VERSION;
}

int print(const Ending& ending) {
  std::fwrite(ending.out.data(), 1, ending.out.size(), stdout);
  const int code = finish_results(ending.exit_code);
  std::fwrite(ending.err.data(), 1, ending.err.size(), stderr);
  return code;
}

int finish_results(int exit_code) {
  // A reader that left, as `head` does, wanted no more.
  if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || errno == EPIPE) return exit_code;
  const std::string complaint = fmt::format("write the results: {}\n", std::generic_category().message(errno));
  std::fwrite(complaint.data(), 1, complaint.size(), stderr);
  return exit_code == kDone ? kIncomplete : exit_code;
}

Option& Option::hide_value() {
  secret = true;
  return *this;
}

Option& Option::may_stand_alone(std::string value) {
  alone = std::move(value);
  return *this;
}

Option& Option::own_variable() {
  own = true;
  return *this;
}

Option& Option::require() {
  required = true;
  return *this;
}

Option& Option::suggest(std::vector<std::string> known) {
  words = std::move(known);
  return *this;
}

Option& Option::short_name(char wanted) {
  letter = wanted;
  return *this;
}

Option& Command::flag(std::string_view name, bool* to, std::string_view help) {
  Option& option = custom(
      name, "", help,
      [to](std::string_view value) -> Result<void> {
        if (value != "true" && value != "false" && value != "1" && value != "0")
          return fail(Code::invalid_argument, "'{}' is neither true nor false", value);
        *to = value == "true" || value == "1";
        return {};
      },
      [to]() -> std::optional<std::string> { return *to ? "true" : "false"; });
  option.kind = Option::Kind::flag;
  return option;
}

Option& Command::custom(std::string_view name, std::string_view placeholder, std::string_view help, Option::Setter set,
                        Option::Getter get) {
  Option& option = options_.emplace_back();
  option.name = name;
  option.placeholder = placeholder;
  option.help = help;
  option.set = std::move(set);
  option.get = std::move(get);
  return option;
}

Option& Command::list(std::string_view name, std::vector<std::string>* to, std::string_view placeholder,
                      std::string_view help) {
  Option& option = custom(
      name, placeholder, help,
      [to](std::string_view value) -> Result<void> {
        to->emplace_back(value);
        return {};
      },
      [] { return std::nullopt; });
  option.kind = Option::Kind::list;
  option.clear = [to] { to->clear(); };
  option.get_list = [to] { return *to; };
  return option;
}

Option& Command::make_positional(Option& option) {
  option.positional = true;
  return option;
}

Result<std::string> Command::one_of(std::string_view value, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), value) != words.end()) return std::string(value);
  const std::vector<std::string_view> known(words.begin(), words.end());
  return fail(Code::invalid_argument, "'{}' is none of {}{}", value, joined(words), did_you_mean(value, known, ""));
}

std::string Command::joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "|") + word;
  return text;
}

CommandLine::CommandLine(std::string program, std::string help)
    : program_(std::move(program)), root_("", std::move(help)) {
  add_builtins(root_);
  root_
      .choice("help-as", &help_form_, {"man", "bash", "zsh"},
              "print all of the help as a man page, or as completion for a shell")
      .builtin = true;
}

Command& CommandLine::command(std::string name, std::string help) {
  Command& added = commands_.emplace_back(std::move(name), std::move(help));
  add_builtins(added);
  return added;
}

void CommandLine::add_builtins(Command& command) {
  command.flag("help", &help_wanted_, "print this text").short_name('h').builtin = true;
  command.flag("version", &version_wanted_, "print the version").builtin = true;
  command.text("config", &config_path_, "FILE", "read options from this TOML file").own_variable().builtin = true;
  command.flag("print-config", &print_wanted_, "print the effective configuration as TOML").builtin = true;
}

std::string_view CommandLine::chosen() const noexcept {
  return chosen_ == nullptr ? std::string_view() : chosen_->name();
}

Ending CommandLine::usage_error(std::string_view text) const {
  const std::string name = chosen_ == nullptr ? program_ : program_ + " " + chosen_->name();
  return {kUsage, "", fmt::format("{}: {}\ntry '{} --help'\n", program_, text, name)};
}

std::vector<const Command*> CommandLine::active() const {
  std::vector<const Command*> commands = {&root_};
  if (chosen_ != nullptr) commands.push_back(chosen_);
  return commands;
}

Reference CommandLine::reference() const {
  return {program_, root_, commands_, command_optional_, examples_};
}

Result<void> CommandLine::split(int argc, const char* const* argv, std::vector<Arguments>& given) {
  const std::vector<std::string> tokens(argv + std::min(argc, 1), argv + argc);
  auto own = split_arguments(root_, tokens, !commands_.empty());
  KV_TRY(own);
  given.push_back(*std::move(own));
  const std::vector<std::string>& rest = given.front().rest;
  if (rest.empty()) return {};
  if (commands_.empty()) return fail(Code::invalid_argument, "'{}' is not expected here", rest.front());

  std::vector<std::string_view> names;
  for (const Command& command : commands_) {
    names.push_back(command.name());
    if (command.name() == rest.front()) chosen_ = &command;
  }
  if (chosen_ == nullptr)
    return fail(Code::invalid_argument, "unknown command '{}'{}", rest.front(), did_you_mean(rest.front(), names, ""));
  auto of_command = split_arguments(*chosen_, std::span(rest).subspan(1), false);
  KV_TRY(of_command);
  if (!of_command->rest.empty())
    return fail(Code::invalid_argument, "'{}' is not expected here", of_command->rest.front());
  given.push_back(*std::move(of_command));
  return {};
}

Result<void> CommandLine::apply(const Option& option, const Values& given, const Values& file,
                                const char* const* environment) const {
  if (const auto found = given.find(option.name); found != given.end())
    return set(option, found->second, (option.positional ? "" : "--") + option.name);
  if (option.positional || option.builtin) return {};
  const std::string variable = environment_name(program_, option);
  if (const auto value = environment_value(environment, variable)) {
    const bool is_list = option.kind == Option::Kind::list;
    return set(option, is_list ? split_commas(*value) : std::vector{std::string(*value)}, variable);
  }
  if (const auto found = file.find(option.name); found != file.end())
    return set(option, found->second, config_path_ + ": " + option.name);
  return {};
}

Result<void> CommandLine::refuse_unknown_keys(const Values& file) const {
  std::vector<std::string_view> known;
  const auto add = [&](const Command& command) {
    for (const Option& option : command.options()) {
      if (!option.builtin && !option.positional) known.push_back(option.name);
    }
  };
  add(root_);
  for (const Command& command : commands_) add(command);
  for (const auto& [key, values] : file) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      return fail(Code::invalid_argument, "{}: unknown key {}{}", config_path_, key, did_you_mean(key, known, ""));
  }
  return {};
}

Result<void> CommandLine::read(int argc, const char* const* argv, const char* const* environment) {
  std::vector<Arguments> given;
  KV_TRY(split(argc, argv, given));
  const std::vector<const Command*> commands = active();
  given.resize(commands.size());
  if (const auto path = environment_value(environment, upper_case(program_) + "_CONFIG")) config_path_ = *path;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    for (const Option& option : commands[i]->options()) {
      if (option.builtin) KV_TRY(apply(option, given[i].values, {}, nullptr));
    }
  }
  if (help_wanted_ || version_wanted_ || !help_form_.empty()) return {};

  Values file;
  if (!config_path_.empty()) {
    auto values = read_config(config_path_);
    KV_TRY(values);
    file = *std::move(values);
    KV_TRY(refuse_unknown_keys(file));
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    for (const Option& option : commands[i]->options()) {
      if (!option.builtin) KV_TRY(apply(option, given[i].values, file, environment));
      if (option.required && !print_wanted_ && !given[i].values.contains(option.name))
        return fail(Code::invalid_argument, "{} is missing", option.name);
    }
  }
  if (chosen_ == nullptr && !commands_.empty() && !command_optional_ && !print_wanted_)
    return fail(Code::invalid_argument, "a command is missing");
  return {};
}

std::optional<Ending> CommandLine::parse(int argc, const char* const* argv, const char* const* environment) {
  if (const auto done = read(argc, argv, environment); !done) return usage_error(done.error().text);
  if (help_wanted_) return Ending{kDone, help_text(reference(), chosen_), ""};
  if (help_form_ == "man") return Ending{kDone, man_page(reference()), ""};
  if (help_form_ == "bash") return Ending{kDone, bash_completion(reference()), ""};
  if (help_form_ == "zsh") return Ending{kDone, zsh_completion(reference()), ""};
  if (version_wanted_) return Ending{kDone, fmt::format("{} {}\n", program_, program_version()), ""};
  if (check_) {
    if (const auto checked = check_(); !checked) return usage_error(checked.error().text);
  }
  if (print_wanted_) return Ending{kDone, write_config(active()), ""};
  return std::nullopt;
}

}  // namespace kvingest::cli
