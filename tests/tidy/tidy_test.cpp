// The world: the project's own tree, read as text, and small samples that break one rule each, so that a rule that no
// longer finds anything is noticed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/catch.hpp"
#include "tests/support/places.hpp"
#include "tests/tidy/rules.hpp"

namespace kvingest::tidy {
namespace {

namespace fs = std::filesystem;

bool is_ours(std::string_view path) {
  constexpr std::array<std::string_view, 16> kBegins{
      "include/", "src/", "storage/", "net/", "http/",     "tests/",         "bench/",    "docs/",
      "data/",    ".ci/", "cmake/",   "dev",  "README.md", "CMakeLists.txt", "examples/", "packaging/"};
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return path.starts_with(begin); });
}

bool is_text(const fs::path& path) {
  constexpr std::array<std::string_view, 6> kEndings{".cpp", ".hpp", ".md", ".txt", ".cmake", ".awk"};
  return std::ranges::find(kEndings, path.extension().string()) != kEndings.end();
}

/// All our text files, with paths from the project's folder.
std::vector<SourceFile> read_tree() {
  const fs::path root = test::project_folder();
  std::vector<SourceFile> tree;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string path = entry.path().lexically_relative(root).generic_string();
    if (!entry.is_regular_file() || !is_ours(path) || !is_text(entry.path())) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    tree.push_back({path, std::string(std::istreambuf_iterator<char>(in), {})});
  }
  return tree;
}

void none(const Findings& findings) {
  for (const Finding& one : findings) FAIL_CHECK(fmt::format("{}:{}: {}", one.path, one.line, one.text));
}

template <class Rule>
void check_each(std::string_view ending, Rule&& rule) {
  int files = 0;
  for (const SourceFile& file : read_tree()) {
    if (!file.path.ends_with(ending)) continue;
    ++files;
    none(rule(file));
  }
  CHECK(files > 0);
}

TEST_CASE("our includes keep to the layers") {
  check_each("pp", wrong_includes);
}

TEST_CASE("our libraries do not print, exit or read the environment, and nothing sleeps") {
  check_each("pp", forbidden_calls);
}

TEST_CASE("our headers are guarded and say what they are") {
  check_each(".hpp", header_form);
}

TEST_CASE("our lines fit, and nothing is left unfinished") {
  check_each("", text_form);
}

TEST_CASE("each of our source files is compiled, each header included") {
  none(dead_files(read_tree()));
}

TEST_CASE("each test that the list of complaints names is there") {
  none(unknown_tests(read_tree()));
}

TEST_CASE("each of our folders says what it is") {
  none(folders_without_readme(read_tree()));
}

// The rules themselves.

TEST_CASE("an include up the layers, to the side, or of another's library is found") {
  const auto wrong = [](std::string path, std::string text) {
    return wrong_includes({std::move(path), std::move(text)}).size();
  };
  CHECK(wrong("src/base/log.cpp", "#include \"codec/x.hpp\"\n") == 1);
  CHECK(wrong("include/kvingest/store.hpp", "#include \"base/x.hpp\"\n") == 1);
  CHECK(wrong("storage/null/null_store.cpp", "#include \"net/x.hpp\"\n") == 1);
  CHECK(wrong("net/feed.cpp", "#include \"storage/x.hpp\"\n#include \"http/x.hpp\"\n") == 2);
  CHECK(wrong("net/feed.cpp", "#include \"service/x.hpp\"\n") == 1);
  CHECK(wrong("src/service/committer.cpp", "#include \"query/x.hpp\"\n") == 1);
  CHECK(wrong("src/query/scan.cpp", "#include \"feed/x.hpp\"\n") == 1);
  CHECK(wrong("bench/kvbench.cpp", "#include \"tests/support/x.hpp\"\n") == 1);
  CHECK(wrong("src/service/committer.cpp", "#include <lmdb.h>\n") == 1);

  CHECK(wrong("src/service/committer.cpp", "#include \"net/x.hpp\"\n#include \"kvingest/x.hpp\"\n") == 0);
  CHECK(wrong("storage/lmdb/lmdb_store.cpp", "#include <lmdb.h>\n#include \"base/x.hpp\"\n") == 0);
  CHECK(wrong("src/kvingest.cpp", "#include \"query/x.hpp\"\n#include \"storage/x.hpp\"\n") == 0);
}

TEST_CASE("a library that prints, exits, reads the environment or sleeps is found") {
  const auto wrong = [](std::string path, std::string text) {
    return forbidden_calls({std::move(path), std::move(text)}).size();
  };
  CHECK(wrong("net/feed.cpp", "std::cout << 1;\nstd::cerr << 2;\n") == 2);
  CHECK(wrong("net/feed.cpp", "  printf(\"x\");\n  std::fprintf(stderr, \"x\");\n  fmt::print(\"x\");\n") == 3);
  CHECK(wrong("storage/registry.cpp", "  std::exit(1);\n  ::_exit(1);\n  return std::getenv(\"X\");\n") == 3);
  CHECK(wrong("tests/net/feed_test.cpp", "  std::this_thread::sleep_for(1ms);\n  usleep(1);\n") == 2);

  CHECK(wrong("net/feed.cpp",
              "// std::cout\n const char* text = \"exit(1)\"; child.exit(); int exit_code = 1'000;\n") == 0);
  CHECK(wrong("net/feed.cpp", "auto raw = R\"x(abort())x\"; void print(int); out->print(1); /* getenv(1)\n */\n") == 0);
  CHECK(wrong("src/kvq.cpp", "  std::cout << 1;\n") == 0);
}

TEST_CASE("a header without a guard or a first line is found") {
  CHECK(header_form({"net/feed.hpp", "// feed.hpp -- feeds.\n"}).size() == 1);
  CHECK(header_form({"net/feed.hpp", "#include <x>\n#pragma once\n"}).size() == 1);
  CHECK(header_form({"net/feed.hpp", "// net/feed.hpp -- feeds.\n#pragma once\n"}).empty());
}

TEST_CASE("a long, tabbed, blank-ended or unfinished line is found") {
  const auto wrong = [](std::string text) { return text_form({"net/feed.cpp", std::move(text)}).size(); };
  CHECK(wrong(std::string(121, 'x') + "\n") == 1);
  CHECK(wrong("\tx\n") == 1);
  CHECK(wrong("x \n") == 1);
  CHECK(wrong("x\r\n") == 1);
  CHECK(wrong("x") == 1);
  CHECK(wrong(std::string("// TO") + "DO: more\n") == 1);
  CHECK(wrong("TEST_CASE(\"one thing; another\") {\n") == 1);

  CHECK(wrong(std::string(120, 'x') + "\n") == 0);
  CHECK(wrong("mkstemp(\"/tmp/kv-XXXXXX\");\n") == 0);
  CHECK(text_form({"README.md", "| " + std::string(200, 'x') + " |\n"}).empty());
}

TEST_CASE("a test that is named and not there is found") {
  const SourceFile test{"tests/net/feed_test.cpp", "TEST_CASE(\"it holds\") {}\n"};
  CHECK(unknown_tests({test, {"tests/COMPLAINTS.md", "| 1 | \"quoted\" | so | \"it holds\" |\n"}}).empty());
  CHECK(unknown_tests({test, {"tests/COMPLAINTS.md", "| 1 | a | so | \"it holds\", \"it held\" |\n"}}).size() == 1);
}

TEST_CASE("a file that nobody compiles or includes is found, and a folder without a README") {
  const SourceFile list{"net/CMakeLists.txt", "kvingest_library(net\n  feed.cpp resp/server.cpp)\n"};
  const SourceFile readme{"net/README.md", "# net\n"};
  const SourceFile source{"net/feed.cpp", "#include \"net/feed.hpp\"\n"};
  const SourceFile nested{"net/resp/server.cpp", "\n"};
  const SourceFile header{"net/feed.hpp", "\n"};
  CHECK(dead_files({list, source, nested, header}).empty());
  CHECK(dead_files({list, source, {"net/old_feed.cpp", "\n"}, header}).size() == 1);
  CHECK(dead_files({list, {"net/feed.cpp", "\n"}, header}).size() == 1);
  CHECK(folders_without_readme({readme, source}).empty());
  CHECK(folders_without_readme({readme, source, nested}).size() == 1);
  CHECK(folders_without_readme({{"net/README.md", "`resp/`: Redis clients\n"}, source, nested}).empty());
}

}  // namespace
}  // namespace kvingest::tidy
