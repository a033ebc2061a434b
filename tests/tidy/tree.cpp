#include <fmt/format.h>

#include <set>
#include <string>

#include "tests/tidy/rules.hpp"

namespace kvingest::tidy {
namespace {

constexpr std::string_view kLists = "CMakeLists.txt";

bool is_source(std::string_view path) {
  return path.ends_with(".cpp");
}
bool is_header(std::string_view path) {
  return path.ends_with(".hpp");
}

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash + 1));
}

/// Whether `word` stands in `text` with no letter of a file name on either side.
bool has_word(std::string_view text, std::string_view word) {
  constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || kNameLetters.find(text[at - 1]) == std::string_view::npos;
    const std::size_t end = at + word.size();
    const bool ends = end == text.size() || kNameLetters.find(text[end]) == std::string_view::npos;
    if (begins && ends) return true;
  }
  return false;
}

/// Whether a CMakeLists.txt of the file's folder or one above names it.
bool is_listed(const std::vector<SourceFile>& tree, std::string_view path) {
  for (const SourceFile& list : tree) {
    if (!list.path.ends_with(kLists)) continue;
    const std::string folder = folder_of(list.path);
    if (path.starts_with(folder) && has_word(list.text, path.substr(folder.size()))) return true;
  }
  return false;
}

/// Everything that an `#include "..."` of the tree names.
std::set<std::string> included_names(const std::vector<SourceFile>& tree) {
  constexpr std::string_view kInclude = "#include \"";
  std::set<std::string> names;
  for (const SourceFile& file : tree) {
    for (std::size_t at = file.text.find(kInclude); at != std::string::npos; at = file.text.find(kInclude, at + 1)) {
      const std::size_t begin = at + kInclude.size();
      names.insert(file.text.substr(begin, file.text.find('"', begin) - begin));
    }
  }
  return names;
}

/// As others include it: without the folder that is on the include path.
std::string include_name(std::string_view path) {
  for (const std::string_view root : {"include/", "src/"}) {
    if (path.starts_with(root)) path.remove_prefix(root.size());
  }
  return std::string(path);
}

bool readme_names(const std::vector<SourceFile>& tree, std::string_view folder, std::string_view name) {
  for (const SourceFile& file : tree) {
    if (file.path.ends_with("README.md") && folder_of(file.path) == folder) {
      return file.text.find(name) != std::string::npos;
    }
  }
  return false;
}

}  // namespace

Findings dead_files(const std::vector<SourceFile>& tree) {
  Findings findings;
  const std::set<std::string> included = included_names(tree);
  for (const SourceFile& file : tree) {
    if (is_source(file.path) && !is_listed(tree, file.path)) {
      findings.push_back({file.path, 0, "no target compiles it: list it in CMakeLists.txt or remove it"});
    }
    if (is_header(file.path) && !included.contains(include_name(file.path))) {
      findings.push_back({file.path, 0, "no file includes it"});
    }
  }
  return findings;
}

Findings unknown_tests(const std::vector<SourceFile>& tree) {
  constexpr std::string_view kBar = "| ";  // Only tables name tests.
  Findings findings;
  std::string tests;
  for (const SourceFile& file : tree) {
    if (is_source(file.path) && file.path.starts_with("tests/")) tests += file.text;
  }
  for (const SourceFile& file : tree) {
    if (!file.path.ends_with("COMPLAINTS.md")) continue;
    int line = 0;
    for (std::size_t at = 0; at < file.text.size();) {
      const std::size_t end = std::min(file.text.find('\n', at), file.text.size());
      std::string_view row = std::string_view(file.text).substr(at, end - at);
      at = end + 1;
      ++line;
      if (!row.starts_with(kBar)) continue;
      row.remove_prefix(row.rfind(" | ") + 1);
      for (std::size_t open = row.find('"'); open != std::string_view::npos; open = row.find('"', open)) {
        const std::size_t close = row.find('"', open + 1);
        if (close == std::string_view::npos) break;
        const std::string name(row.substr(open, close - open + 1));
        if (tests.find(name) == std::string::npos) findings.push_back({file.path, line, name + " is no test"});
        open = close + 1;
      }
    }
  }
  return findings;
}

Findings folders_without_readme(const std::vector<SourceFile>& tree) {
  std::set<std::string> folders;
  for (const SourceFile& file : tree) {
    if (is_source(file.path) || is_header(file.path)) folders.insert(folder_of(file.path));
  }
  Findings findings;
  for (const std::string& folder : folders) {
    const std::string_view inner = std::string_view(folder).substr(0, folder.size() - 1);
    const std::string above = folder_of(inner);
    const std::string name = folder.substr(above.size());
    if (!readme_names(tree, folder, "") && !readme_names(tree, above, name)) {
      findings.push_back({folder, 0, "say what it is in its README.md, or in a line of the README.md above"});
    }
  }
  return findings;
}

}  // namespace kvingest::tidy
