#include "base/cli_arguments.hpp"

#include <CLI/CLI.hpp>

namespace kvingest::cli {
namespace {

std::string names_of(const Option& option) {
  if (option.positional) return option.name;
  std::string names = "--" + option.name;
  if (option.letter != 0) names += std::string(",-") + option.letter;
  return names;
}

/// Options are declared as plain text: our own setters read the values, which may also come from elsewhere.
CLI::Option* declare(CLI::App& app, const Option& option) {
  if (option.kind == Option::Kind::flag) return app.add_flag(names_of(option));
  CLI::Option* declared = app.add_option(names_of(option), CLI::callback_t{});
  declared->type_name(option.placeholder)->allow_extra_args(false);
  if (option.kind == Option::Kind::list)
    declared->expected(-1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(option.positional);
  else if (option.alone)
    declared->expected(0, 1);
  else
    declared->expected(1);
  return declared;
}

/// CLI11 takes `--name=` for `--name` and would then eat the next argument; here it gives the empty text.
std::vector<std::string> with_empty_values(std::span<const std::string> tokens) {
  std::vector<std::string> result;
  for (const std::string& token : tokens) {
    if (token.size() > 3 && token.starts_with("--") && token.find('=') == token.size() - 1) {
      result.push_back(token.substr(0, token.size() - 1));
      result.emplace_back();
    } else {
      result.push_back(token);
    }
  }
  return result;
}

Result<void> refuse_unknown(const Command& command, const std::vector<std::string>& rest) {
  for (const std::string& token : rest) {
    if (!token.starts_with("-") || token == "-" || token == "--") continue;
    const std::string name = token.substr(0, token.find('='));
    std::vector<std::string_view> known;
    for (const Option& option : command.options()) {
      if (!option.positional) known.push_back(option.name);
    }
    const std::string_view bare = std::string_view(name).substr(std::min(name.find_first_not_of('-'), name.size()));
    return fail(Code::invalid_argument, "unknown option {}{}", name, did_you_mean(bare, known, "--"));
  }
  return {};
}

}  // namespace

Result<Arguments> split_arguments(const Command& command, std::span<const std::string> tokens, bool stop_at_word) {
  try {
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    app.prefix_command(stop_at_word);
    std::vector<std::pair<const Option*, CLI::Option*>> declared;
    for (const Option& option : command.options()) declared.emplace_back(&option, declare(app, option));
    std::vector<std::string> reversed = with_empty_values(tokens);
    std::reverse(reversed.begin(), reversed.end());  // What CLI11 expects of a vector.
    app.parse(reversed);

    Arguments arguments;
    for (const auto& [option, given] : declared) {
      if (given->count() > 0) arguments.values[option->name] = given->results();
    }
    for (std::string& token : app.remaining()) {
      if (token != "--" || stop_at_word) arguments.rest.push_back(std::move(token));
    }
    // Behind the word that stops us everything belongs to the subcommand.
    const bool own = !stop_at_word || arguments.rest.empty() || arguments.rest.front().starts_with("-");
    if (own) KV_TRY(refuse_unknown(command, arguments.rest));
    return arguments;
  } catch (const CLI::Error& error) {
    return fail(Code::invalid_argument, "{}", error.what());
  }
}

}  // namespace kvingest::cli
