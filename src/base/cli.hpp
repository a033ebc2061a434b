// cli.hpp -- the command line of every program: options, subcommands, environment and configuration file.
//
//   cli::CommandLine line("kvfeed", "Sends a text feed.");
//   line.root().number("messages", &settings.messages, "N", "how many lines to send");
//   line.root().flag("json", &settings.json, "print the result as one JSON object");
//   if (const auto ending = line.parse(argc, argv, environ)) return cli::print(*ending);
//
// A value comes from the first of: the option (`--queue-bytes 8M`), the environment (`KVINGEST_QUEUE_BYTES`), the file
// that --config names (TOML: flat keys named like the options, arrays for repeatable ones), the variable's value before
// parse(), which is the default that --help shows. In the environment the values of a repeatable option are separated
// by commas. Every program has --help, --version, --config FILE and --print-config, and --help-as, which prints the
// same as a man page or as completion for a shell: what is installed of these is made by the programs themselves.
//
// One environment serves all programs. So an option that kvingest has, too, with another meaning or other values is
// KVFEED_CPU in kvfeed's environment, not KVINGEST_CPU (own_variable()); and so is --config, whose file holds the
// options of one program.
//
// Threads:  none; used before a program starts any.
// Lifetime: the variables bound to options outlive the CommandLine.
// Errors:   parse() returns how to end: a usage error carries one sentence that names the option, and the nearest known
//           one when the name was wrong.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/quantity.hpp"
#include "kvingest/result.hpp"

namespace kvingest::cli {

// Exit codes of all programs.
inline constexpr int kDone = 0;
inline constexpr int kIncomplete = 1;        ///< The work failed or is not complete; a port in use, too.
inline constexpr int kUsage = 2;             ///< Wrong usage or configuration.
inline constexpr int kStoreUnavailable = 3;  ///< The store cannot be opened.
inline constexpr int kInterrupted = 130;     ///< By the user, as shells report SIGINT.

/// "0.1.0": the version of the project.
[[nodiscard]] std::string_view program_version() noexcept;

/// How a program ends without having begun its work.
struct Ending {
  int exit_code = kDone;
  std::string out;  ///< For stdout.
  std::string err;  ///< For stderr.
};

/// Writes both texts where they belong and returns the exit code; kIncomplete when the results cannot be written.
int print(const Ending& ending);

/// Writes out what was printed to stdout. Returns `exit_code`, or kIncomplete instead of kDone when that fails: results
/// that nobody got are no success.
int finish_results(int exit_code);

/// One option or positional argument of a command: made by the functions of Command, read by CommandLine.
struct Option {
  using Setter = std::function<Result<void>(std::string_view value)>;
  using Getter = std::function<std::optional<std::string>()>;  ///< Nothing: not set.
  enum class Kind { flag, number, text, list };

  /// --print-config shows `***` in place of the value.
  Option& hide_value();
  /// The option may be given without a value, and then means `value`.
  Option& may_stand_alone(std::string value);
  /// The environment has it under the program's own name (`KVFEED_CPU`): kvingest has another option of this name.
  Option& own_variable();
  /// A positional argument that must be given.
  Option& require();
  /// What completion offers; other values may be right, too.
  Option& suggest(std::vector<std::string> known);
  /// One letter as a second name: `-n`.
  Option& short_name(char wanted);

  Kind kind = Kind::text;
  std::string name;
  std::string placeholder;
  std::string help;
  Setter set;
  Getter get;
  std::function<void()> clear;                         ///< Lists: drops what is there by default.
  std::function<std::vector<std::string>()> get_list;  ///< Lists only.
  std::vector<std::string> words;                      ///< What completion offers.
  std::optional<std::string> alone;
  char letter = 0;
  bool secret = false;
  bool required = false;
  bool positional = false;
  bool own = false;      ///< See own_variable().
  bool builtin = false;  ///< --help and the like: not part of the configuration.
};

namespace detail {
template <class T>
struct PlainOf {
  using type = T;
};
template <class T>
struct PlainOf<std::optional<T>> {
  using type = T;
};
}  // namespace detail

/// T without std::optional.
template <class T>
using Plain = typename detail::PlainOf<T>::type;

/// The options of a program or of one of its subcommands. `to` is where the value goes and what it is by default; a
/// std::optional has none.
class Command {
 public:
  Command(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& help() const noexcept { return help_; }
  [[nodiscard]] const std::deque<Option>& options() const noexcept { return options_; }

  /// true when named; takes no value on the command line, true or false elsewhere.
  Option& flag(std::string_view name, bool* to, std::string_view help);

  /// Any text. T: std::string or std::optional<std::string>.
  template <class T>
  Option& text(std::string_view name, T* to, std::string_view placeholder, std::string_view help) {
    return bind(
        Option::Kind::text, name, to, placeholder, help,
        [](std::string_view value) { return Result<std::string>(std::string(value)); },
        [](const std::string& value) { return value; });
  }

  /// A whole number from `least` to `most`. T: an integer or a std::optional of one.
  template <class T>
  Option& number(std::string_view name, T* to, std::string_view placeholder, std::string_view help,
                 std::uint64_t least = 0, std::uint64_t most = std::numeric_limits<Plain<T>>::max()) {
    return bind(
        Option::Kind::number, name, to, placeholder, help,
        [least, most](std::string_view value) { return parse_count(value, least, most); },
        [](Plain<T> value) { return std::to_string(value); });
  }

  /// Bytes, as in 8M. T: an unsigned integer of 64 bits or a std::optional of one.
  template <class T>
  Option& size(std::string_view name, T* to, std::string_view help) {
    return bind(
        Option::Kind::text, name, to, "SIZE", help, [](std::string_view value) { return parse_size(value); },
        [](Plain<T> value) { return format_size(value); });
  }

  /// A time, as in 250ms or 5s. T: std::chrono::milliseconds or a std::optional of it.
  template <class T>
  Option& duration(std::string_view name, T* to, std::string_view help) {
    return bind(
        Option::Kind::text, name, to, "T", help, [](std::string_view value) { return parse_duration(value); },
        [](Plain<T> value) { return format_duration(value); });
  }

  /// One of `words`. T: std::string or std::optional<std::string>.
  template <class T>
  Option& choice(std::string_view name, T* to, std::vector<std::string> words, std::string_view help) {
    Option& option = bind(
        Option::Kind::text, name, to, joined(words), help,
        [words](std::string_view value) { return one_of(value, words); },
        [](const std::string& value) { return value; });
    option.words = std::move(words);
    return option;
  }

  /// A value that `set` reads; `get` gives its present text, or nothing.
  Option& custom(std::string_view name, std::string_view placeholder, std::string_view help, Option::Setter set,
                 Option::Getter get);

  /// Repeatable: each use adds a value; the first drops what the list held by default.
  Option& list(std::string_view name, std::vector<std::string>* to, std::string_view placeholder,
               std::string_view help);

  /// The next argument that is no option. `name` is how messages and --help call it.
  template <class T>
  Option& positional(std::string_view name, T* to, std::string_view help) {
    return make_positional(text(name, to, name, help));
  }
  /// All further arguments that are no options.
  Option& positionals(std::string_view name, std::vector<std::string>* to, std::string_view help) {
    return make_positional(list(name, to, name, help));
  }

 private:
  template <class T, class Parse, class Format>
  Option& bind(Option::Kind kind, std::string_view name, T* to, std::string_view placeholder, std::string_view help,
               Parse parse, Format format) {
    Option& option = custom(
        name, placeholder, help,
        [to, parse](std::string_view value) -> Result<void> {
          auto parsed = parse(value);
          KV_TRY(parsed);
          *to = static_cast<Plain<T>>(*std::move(parsed));
          return {};
        },
        [to, format]() -> std::optional<std::string> {
          if constexpr (std::is_same_v<T, Plain<T>>)
            return format(*to);
          else if (*to)
            return format(**to);
          else
            return std::nullopt;
        });
    option.kind = kind;
    return option;
  }

  static Result<std::string> one_of(std::string_view value, const std::vector<std::string>& words);
  static std::string joined(const std::vector<std::string>& words);
  static Option& make_positional(Option& option);

  std::string name_;
  std::string help_;
  std::deque<Option> options_;  ///< A deque: references to options stay valid.
};

struct Arguments;  // src/base/cli_arguments.hpp
struct Reference;  // src/base/cli_reference.hpp
/// What was given for each option, by its name, in the order given.
using Values = std::map<std::string, std::vector<std::string>, std::less<>>;

class CommandLine {
 public:
  CommandLine(std::string program, std::string help);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// The options of the program itself, which stand before a subcommand.
  [[nodiscard]] Command& root() noexcept { return root_; }

  /// Adds a subcommand.
  Command& command(std::string name, std::string help);
  /// A program with subcommands may be run without one; by default it may not.
  void command_is_optional() { command_optional_ = true; }

  /// Adds a call for the man page: its arguments behind the program's name, and what it does.
  void example(std::string arguments, std::string meaning) {
    examples_.emplace_back(std::move(arguments), std::move(meaning));
  }

  /// `check` is called when all values are in, before --print-config prints them: it fills in those that follow from
  /// others and says what makes no sense together, which then is wrong usage.
  void check_with(std::function<Result<void>()> check) { check_ = std::move(check); }

  /// Puts values into the bound variables. Returns how to end (--help, --version, --print-config, wrong usage), or
  /// nothing: go on. `environment` is a null-terminated list of NAME=VALUE.
  [[nodiscard]] std::optional<Ending> parse(int argc, const char* const* argv, const char* const* environment);

  /// The name of the subcommand that was given, or empty.
  [[nodiscard]] std::string_view chosen() const noexcept;

  /// What to end with when the values, each of them right, make no sense together.
  [[nodiscard]] Ending usage_error(std::string_view text) const;

 private:
  void add_builtins(Command& command);
  [[nodiscard]] std::vector<const Command*> active() const;
  Result<void> split(int argc, const char* const* argv, std::vector<Arguments>& given);
  Result<void> read(int argc, const char* const* argv, const char* const* environment);
  Result<void> apply(const Option& option, const Values& given, const Values& file,
                     const char* const* environment) const;
  Result<void> refuse_unknown_keys(const Values& file) const;
  [[nodiscard]] Reference reference() const;

  std::string program_;
  Command root_;
  std::deque<Command> commands_;  ///< A deque: references to commands stay valid.
  const Command* chosen_ = nullptr;
  bool command_optional_ = false;
  bool help_wanted_ = false;
  bool version_wanted_ = false;
  bool print_wanted_ = false;
  std::string help_form_;
  std::string config_path_;
  std::vector<std::pair<std::string, std::string>> examples_;
  std::function<Result<void>()> check_;
};

}  // namespace kvingest::cli
