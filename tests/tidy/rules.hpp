// rules.hpp -- the house rules that a program can check, each a function from a source file to what is wrong in it.
//
// The rules read text, not C++: comments and literals are blanked out first, which is enough for what they look for.
//
// Threads: values; no shared state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvingest::tidy {

struct SourceFile {
  std::string path;  ///< From the project's folder: "src/base/log.cpp".
  std::string text;
};

struct Finding {
  std::string path;
  int line = 0;      ///< From 1; 0 when it is about the whole file.
  std::string text;  ///< What is wrong and what to do about it.
};

using Findings = std::vector<Finding>;

/// The text with comments, string and character literals replaced by spaces; line ends stay.
[[nodiscard]] std::string code_only(std::string_view text);

/// Includes that go up the layers, to the side (storage, net and http), or to another layer's third-party library.
[[nodiscard]] Findings wrong_includes(const SourceFile& file);

/// A library that prints, exits or reads the environment; a thread or test that sleeps.
[[nodiscard]] Findings forbidden_calls(const SourceFile& file);

/// A header without `#pragma once`, or whose first line does not say what it is.
[[nodiscard]] Findings header_form(const SourceFile& file);

/// Lines over 120 characters, tabs, blanks at a line's end, a missing last line end, marks of unfinished work.
[[nodiscard]] Findings text_form(const SourceFile& file);

/// Source files that no CMakeLists.txt names, and headers that no file includes.
[[nodiscard]] Findings dead_files(const std::vector<SourceFile>& tree);

/// Tests that tests/COMPLAINTS.md names, in quotes, and that no file of the tree has.
[[nodiscard]] Findings unknown_tests(const std::vector<SourceFile>& tree);

/// Folders with sources that neither have a README.md nor are named (`null/`) in the one of the folder above.
[[nodiscard]] Findings folders_without_readme(const std::vector<SourceFile>& tree);

}  // namespace kvingest::tidy
