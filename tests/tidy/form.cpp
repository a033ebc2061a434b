#include <fmt/format.h>

#include <array>

#include "tests/tidy/rules.hpp"

namespace kvingest::tidy {
namespace {

constexpr std::size_t kLineCharactersMax = 120;

// Each is in two parts, so that this file does not break its own rule.
constexpr std::array<std::string_view, 4> kUnfinished{
    "TO"
    "DO",
    "FIX"
    "ME",
    "X"
    "XX",
    "HA"
    "CK"};

std::size_t characters(std::string_view line) {
  std::size_t count = 0;
  for (const char byte : line) {
    const bool continues = (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;  // UTF-8: not a character's first byte
    count += continues ? 0 : 1;
  }
  return count;
}

/// Whether `mark` stands in `line` by itself: mkstemp's pattern of X is none.
bool has_mark(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return false;
  const auto is_letter = [](char letter) { return letter >= 'A' && letter <= 'Z'; };
  const std::size_t end = at + mark.size();
  return (at == 0 || !is_letter(line[at - 1])) && (end == line.size() || !is_letter(line[end]));
}

bool is_markdown(std::string_view path) {
  return path.ends_with(".md");
}

std::string wrong_line(std::string_view path, std::string_view line) {
  const bool may_be_long = is_markdown(path) && (line.starts_with('|') || line.find("](") != std::string_view::npos);
  if (characters(line) > kLineCharactersMax && !may_be_long) {
    return fmt::format("{} characters, at most {} fit", characters(line), kLineCharactersMax);
  }
  if (line.find('\t') != std::string_view::npos) return "a tab";
  if (line.ends_with(' ') || line.ends_with('\r')) return "a blank at the end";
  if (line.starts_with("TEST_CASE(") && line.find(';') != std::string_view::npos) {
    return "a semicolon in a test's name: CTest makes two tests of it, one of which runs nothing";
  }
  for (const std::string_view mark : kUnfinished) {
    if (has_mark(line, mark)) return fmt::format("{}: finish it, or file it", mark);
  }
  return {};
}

}  // namespace

Findings text_form(const SourceFile& file) {
  Findings findings;
  std::string_view rest = file.text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string wrong = wrong_line(file.path, rest.substr(0, end));
    if (!wrong.empty()) findings.push_back({file.path, number, std::move(wrong)});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!file.text.empty() && !file.text.ends_with('\n')) findings.push_back({file.path, 0, "the last line has no end"});
  return findings;
}

Findings header_form(const SourceFile& file) {
  Findings findings;
  if (file.text.find("\n#pragma once\n") == std::string::npos) {
    findings.push_back({file.path, 0, "a header needs `#pragma once`"});
  }
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  const std::string first = file.text.substr(0, file.text.find('\n'));
  if (!first.starts_with("// ") || first.find(name + " -- ") == std::string::npos) {
    findings.push_back({file.path, 1, fmt::format("the first line says what it is: `// {} -- ...`", name)});
  }
  return findings;
}

}  // namespace kvingest::tidy
