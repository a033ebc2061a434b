#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tests/tidy/rules.hpp"

namespace kvingest::tidy {
namespace {

enum class Where { libraries, everywhere };

struct Rule {
  std::string_view name;
  bool is_call;  ///< Only when `(` follows.
  Where where;
  std::string_view instead;
};

constexpr std::string_view kNoPrint = "a library does not print: return it, or log through base/log.hpp";
constexpr std::string_view kNoExit = "a library does not end the program: return a Result, or KV_ASSERT";
constexpr std::string_view kNoEnvironment = "a library does not read the environment: take it as an option";
constexpr std::string_view kNoSleep = "no thread sleeps and polls: wait for the event";

constexpr std::array kRules{
    Rule{"cout", false, Where::libraries, kNoPrint},
    Rule{"cerr", false, Where::libraries, kNoPrint},
    Rule{"clog", false, Where::libraries, kNoPrint},
    Rule{"printf", true, Where::libraries, kNoPrint},
    Rule{"fprintf", true, Where::libraries, kNoPrint},
    Rule{"dprintf", true, Where::libraries, kNoPrint},
    Rule{"puts", true, Where::libraries, kNoPrint},
    Rule{"fputs", true, Where::libraries, kNoPrint},
    Rule{"putchar", true, Where::libraries, kNoPrint},
    Rule{"perror", true, Where::libraries, kNoPrint},
    Rule{"print", true, Where::libraries, kNoPrint},
    Rule{"exit", true, Where::libraries, kNoExit},
    Rule{"_exit", true, Where::libraries, kNoExit},
    Rule{"quick_exit", true, Where::libraries, kNoExit},
    Rule{"abort", true, Where::libraries, kNoExit},
    Rule{"terminate", true, Where::libraries, kNoExit},
    Rule{"getenv", true, Where::libraries, kNoEnvironment},
    Rule{"secure_getenv", true, Where::libraries, kNoEnvironment},
    Rule{"sleep", true, Where::everywhere, kNoSleep},
    Rule{"usleep", true, Where::everywhere, kNoSleep},
    Rule{"nanosleep", true, Where::everywhere, kNoSleep},
    Rule{"sleep_for", true, Where::everywhere, kNoSleep},
    Rule{"sleep_until", true, Where::everywhere, kNoSleep},
};

/// Files that may after all, each with its reason.
struct Exception {
  std::string_view file;  ///< How its path begins.
  std::string_view name;
};

constexpr std::array kExceptions{
    Exception{"src/base/check.cpp", "abort"},                // What a failed assertion is for.
    Exception{"src/base/check.cpp", "fprintf"},              // The same.
    Exception{"src/base/progress.cpp", "fputs"},             // It is the programs' progress bar.
    Exception{"src/base/cli", "getenv"},                     // The options of the programs.
    Exception{"src/feed/resuming_push.cpp", "sleep_for"},    // Back-off before connecting again.
    Exception{"src/feed/sender.cpp", "sleep_until"},         // A feed's rate is about time itself.
    Exception{"storage/mmap/bus_guard.cpp", "_exit"},        // A SIGBUS where there is nothing to return to.
    Exception{"tests/storage/crash_test.cpp", "nanosleep"},  // The random moment of a kill is no event.
    Exception{"tests/support/process.cpp", "nanosleep"},     // eventually(), for states that raise no event.
};

bool is_library(std::string_view path) {
  constexpr std::array<std::string_view, 9> kFolders{
      "include/", "src/base/", "src/codec/", "src/record/", "src/service/", "src/query/", "storage/", "net/", "http/"};
  return std::ranges::any_of(kFolders, [&](std::string_view folder) { return path.starts_with(folder); });
}

bool is_excepted(std::string_view path, std::string_view name) {
  return std::ranges::any_of(kExceptions,
                             [&](const Exception& one) { return path.starts_with(one.file) && one.name == name; });
}

bool is_word(char letter) {
  return letter == '_' || (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z');
}

/// Calls of members (`process.exit(`) and of functions of other namespaces than std are others.
bool is_foreign(std::string_view before) {
  if (before.ends_with('.') || before.ends_with("->")) return true;
  if (!before.ends_with("::")) return false;
  before.remove_suffix(2);
  const bool known = before.ends_with("std") || before.ends_with("this_thread") || before.ends_with("fmt");
  return !known && !before.empty() && is_word(before.back());
}

/// A declaration or definition has a type in front: `void print(`.
bool is_declaration(std::string_view before) {
  constexpr std::string_view kReturn = "return ";
  if (!before.ends_with(' ') || before.ends_with(kReturn)) return false;
  before.remove_suffix(1);
  return !before.empty() && (is_word(before.back()) || before.back() == '>' || before.back() == '&');
}

const Rule* rule_for(std::string_view code, std::size_t begin, std::size_t end) {
  const std::string_view name = code.substr(begin, end - begin);
  const auto rule = std::ranges::find(kRules, name, &Rule::name);
  if (rule == kRules.end()) return nullptr;
  const std::string_view before = code.substr(0, begin);
  if (rule->is_call && !code.substr(end).starts_with('(')) return nullptr;
  if (is_foreign(before) || (rule->is_call && is_declaration(before))) return nullptr;
  return &*rule;
}

}  // namespace

Findings forbidden_calls(const SourceFile& file) {
  Findings findings;
  const std::string code = code_only(file.text);
  const bool library = is_library(file.path);
  int line = 1;
  for (std::size_t at = 0; at < code.size();) {
    if (code[at] == '\n') ++line;
    if (!is_word(code[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < code.size() && is_word(code[end])) ++end;
    const Rule* rule = rule_for(code, at, end);
    if (rule != nullptr && (library || rule->where == Where::everywhere) && !is_excepted(file.path, rule->name)) {
      findings.push_back({file.path, line, fmt::format("{}: {}", rule->name, rule->instead)});
    }
    at = end;
  }
  return findings;
}

}  // namespace kvingest::tidy
