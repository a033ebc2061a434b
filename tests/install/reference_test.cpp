// Man pages and completion: made by the programs from the options that --help prints, so that none can say what another
// does not. The world: the programs of this build, what `cmake --install` leaves of it, bash and zsh.
#include <fmt/format.h>

#include <regex>
#include <set>

#include "tests/install/installed.hpp"
#include "tests/support/skip.hpp"

namespace kvingest::test {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

std::string output_of(std::vector<std::string> argv) {
  const Finished done = run(std::move(argv));
  INFO(done.err);
  REQUIRE(done.exit.code == 0);
  return done.out;
}

/// What the first group of `pattern` matches in `text`.
Names matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern, std::regex::multiline);
  Names names;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

/// The options and subcommands that --help of a program names.
struct Help {
  Names commands;
  std::map<std::string, Names> options;  ///< By subcommand; of the program itself under the empty name.
  Names all;

  explicit Help(const std::string& name) {
    const std::string root = output_of({program(name), "--help"});
    if (root.find(" COMMAND ...") != std::string::npos) commands = matches(root, "^  ([a-z][a-z-]*) ");
    add("", root);
    for (const std::string& command : commands) add(command, output_of({program(name), command, "--help"}));
  }

 private:
  void add(const std::string& command, const std::string& help) {
    options[command] = matches(help, "^  (?:-[a-z], )?--([a-z-]+)");
    all.insert(options[command].begin(), options[command].end());
  }
};

TEST_CASE("the man page of each program names every option and subcommand that --help does, and no other") {
  for (const std::string name : kInstalledPrograms) {
    CAPTURE(name);
    const Help help(name);
    const std::string page = output_of({program(name), "--help-as", "man"});
    Names named;
    for (std::string option : matches(page, R"(\\fB\\-\\-([a-z\\-]+)\\fR)"))
      named.insert(std::regex_replace(option, std::regex(R"(\\-)"), "-"));
    CHECK(named == help.all);
    CHECK(matches(page, fmt::format(R"(^\.SS "{} ([a-z\\-]+))", name).c_str()).size() == help.commands.size());
  }
}

TEST_CASE("each example of a man page is a call that the program takes") {
  for (const std::string name : kInstalledPrograms) {
    CAPTURE(name);
    const std::string page = output_of({program(name), "--help-as", "man"});
    const Names examples = matches(page, fmt::format(R"(^\\fB{} (.*)\\fR$)", name).c_str());
    CHECK(examples.size() >= 3);
    for (std::string example : examples) {
      example = std::regex_replace(example, std::regex(R"(\\-)"), "-");
      example = std::regex_replace(example, std::regex(R"(\\\(aq)"), "'");
      const Finished read = run({"sh", "-c", fmt::format("{} {} --print-config", program(name), example)});
      CAPTURE(example, read.err);
      CHECK(read.exit.code == 0);
    }
  }
}

TEST_CASE("the installed man pages and completions are what the installed programs print, and man finds no fault") {
  const TempDir prefix;
  const fs::path programs = install_programs(prefix);
  const bool has_man = run({"sh", "-c", "command -v man"}).exit.code == 0;
  for (const std::string name : kInstalledPrograms) {
    CAPTURE(name);
    const fs::path page = prefix / fmt::format("share/man/man1/{}.1", name);
    CHECK(file_text(page) == output_of({programs / name, "--help-as", "man"}));
    CHECK(file_text(prefix / ("share/bash-completion/completions/" + name)) ==
          output_of({programs / name, "--help-as", "bash"}));
    CHECK(file_text(prefix / ("share/zsh/site-functions/_" + name)) ==
          output_of({programs / name, "--help-as", "zsh"}));
    if (!has_man) continue;
    const Finished shown = run({"man", "--warnings", "-E", "UTF-8", "-l", page}, {.env = {{"MANPAGER", "cat"}}});
    CHECK(shown.exit.code == 0);
    CHECK(shown.err.empty());
    CHECK_THAT(shown.out, contains_text("SYNOPSIS"));
  }
  if (!has_man) KV_SKIP("man is not installed (man-db)");
}

/// What bash offers when `words` are on the line and the last one is being typed.
Names bash_offers(const std::string& name, const std::string& words) {
  const std::string script = fmt::format(
      "eval \"$({0} --help-as bash)\"; COMP_WORDS=({1} {2}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
      "_{1}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
      program(name), name, words);
  return matches(output_of({"bash", "--norc", "-c", script}), "^(.+)$");
}

Names with_dashes(const Names& options) {
  Names names;
  for (const std::string& option : options) names.insert("--" + option);
  return names;
}

TEST_CASE("bash completes commands, the options of each, and the words that an option takes") {
  for (const std::string name : kInstalledPrograms) {
    CAPTURE(name);
    const Help help(name);
    if (!help.commands.empty()) CHECK(bash_offers(name, "''") == help.commands);
    for (const auto& [command, options] : help.options) {
      CAPTURE(command);
      CHECK(bash_offers(name, command + " --") == with_dashes(options));
    }
  }
  CHECK(bash_offers("kvq", "export --format ''") == Names{"csv", "json", "text"});
  CHECK(bash_offers("kvq", "export --format = j") == Names{"json"});
  CHECK(bash_offers("kvq", "rejects re") == Names{"replay"});
  CHECK(bash_offers("kvq", "scan --limit ''").empty());
  CHECK(bash_offers("kvingest", "--durability inter") == Names{"interval:1s"});
  const TempDir folder;
  write_text(folder / "a file", "");
  CHECK(bash_offers("kvq", fmt::format("import '{}/a'", folder.path().native())) == Names{folder / "a file"});
}

TEST_CASE("zsh loads each completion, which names every option") {
  if (run({"sh", "-c", "command -v zsh"}).exit.code != 0) KV_SKIP("zsh is not installed");
  const TempDir folder;
  std::string programs;
  std::string expected;
  for (const std::string name : kInstalledPrograms) {
    CAPTURE(name);
    const Help help(name);
    const std::string text = output_of({program(name), "--help-as", "zsh"});
    CHECK(matches(text, "--([a-z-]+)=?[\\['}]") == help.all);
    for (const std::string& command : help.commands) CHECK_THAT(text, contains_text("        " + command + ")\n"));
    write_text(folder / ("_" + name), text);
    programs += " " + name;
    expected += fmt::format("_{0}: function\n_{0}\n", name);
  }
  const std::string script = fmt::format(
      "fpath=({} $fpath); autoload -Uz compinit; compinit -u -D; "
      "for name in{}; do autoload +X _$name; whence -w _$name; print $_comps[$name]; done",
      folder.path().native(), programs);
  CHECK(output_of({"zsh", "-f", "-c", script}) == expected);
}

TEST_CASE("zsh offers the commands and the words of an option to who types") {
  if (run({"sh", "-c", "command -v zsh"}).exit.code != 0) KV_SKIP("zsh is not installed");
  const TempDir folder;
  write_text(folder / "_kvq", output_of({program("kvq"), "--help-as", "zsh"}));
  // A terminal of its own, in which the list of what fits is printed between two marks.
  write_text(folder / "type.zsh", fmt::format(R"(zmodload zsh/zpty
zpty shell zsh -f -i
say() {{ zpty -w shell "$1"; }}
say 'PS1=; fpath=({0} $fpath); autoload -Uz compinit; compinit -u -d {0}/dump'
say 'zstyle ":completion:*" list-colors; zstyle ":completion:*" verbose no; LISTMAX=1000; bindkey "^X" list-choices'
say "print rea''dy"
zpty -r shell answer '*ready*'
zpty -w -n shell $'kvq export --format=\C-X'
zpty -r shell answer '*csv*json*text*' && print "offered"
zpty -d shell
)",
                                              folder.path().native()));
  CHECK_THAT(output_of({"zsh", "-f", folder / "type.zsh"}), contains_text("offered"));
}

}  // namespace
}  // namespace kvingest::test
