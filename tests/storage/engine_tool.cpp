// engine_tool.cpp -- an engine in a process of its own: one command a line on stdin, one line as the answer.
//
//   test_engine_tool ENGINE DIR fresh|again|read_only [k=v,...]      says "open" when it is
//
//   put TEXT FIRST COUNT BYTES LEVEL            writes numbered_batch() -> ok, or the code of the failure
//   get KEY                                     -> the value, (none), or the code
//   count, last_batch, verify, sync, close      -> a number, ok or the code
//   stat NAME                                   -> its value
//   block                                       stops in the middle of a scan until it is killed -> blocked
//   exit                                        leaves main() with the store open
//   die                                         ends at once, without any destructor
//
// Notices go to stderr.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "base/posix.hpp"
#include "kvingest/engine.hpp"
#include "storage/engine_rows.hpp"

namespace kvingest::test {
namespace {

EngineOptions parse_options(const std::string& text) {
  EngineOptions options;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    options[part.substr(0, equals)] = part.substr(equals + 1);
  }
  return options;
}

std::string answer(const Error& error) {
  std::cerr << error.text << std::endl;
  return std::string(to_string(error.code));
}

template <class T>
std::string answer(const Result<T>& result) {
  if (!result) return answer(result.error());
  if constexpr (std::is_void_v<T>) {
    return "ok";
  } else {
    return fmt::format("{}", *result);
  }
}

std::string put(Store& store, std::istream& words) {
  std::string text;
  std::string level;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::size_t bytes = 0;
  words >> text >> first >> count >> bytes >> level;
  WriteBatch batch;
  for (std::uint64_t i = first; i < first + count; ++i)
    batch.put(fmt::format("{}{:08}", text, i), std::string(bytes, static_cast<char>('a' + i % 26)));
  return answer(store.write(batch, level == "disk" ? Durability::disk : Durability::kernel));
}

std::string get(const Store& store, const std::string& key) {
  std::string value = "(none)";
  const auto got = store.get(key, [&](std::string_view found) { value = found; });
  return got ? value : answer(got);
}

std::string check(const Store& store) {
  const auto report = store.verify();
  return report ? std::to_string(report->records) : answer(report.error());
}

std::string stat(const Store& store, const std::string& name) {
  std::string found = "(none)";
  store.stats([&](std::string_view known, std::uint64_t value) {
    if (known == name) found = std::to_string(value);
  });
  return found;
}

[[noreturn]] void block(const Store& store) {
  static_cast<void>(store.scan({}, [](std::string_view, std::string_view) {
    std::cout << "blocked" << std::endl;
    while (true) pause();
    return true;
  }));
  std::_Exit(1);
}

std::string run(Store& store, const std::string& command, std::istream& words) {
  std::string word;
  if (command == "put") return put(store, words);
  if (command == "count") return answer(store.count());
  if (command == "last_batch") return std::to_string(store.last_batch());
  if (command == "verify") return check(store);
  if (command == "sync") return answer(store.sync());
  if (command == "close") return answer(store.close());
  if (command == "block") block(store);
  if (command == "die") std::_Exit(0);
  words >> word;
  if (command == "get") return get(store, word);
  if (command == "stat") return stat(store, word);
  return "what?";
}

const Engine* find_engine(std::string_view name) {
  for (const Engine* engine : engines()) {
    if (engine->name == name) return engine;
  }
  return nullptr;
}

int serve(const std::vector<std::string>& words) {
  const Engine* const engine = find_engine(words.at(1));
  if (engine == nullptr || engine->open == nullptr) return 2;
  auto store = engine->open({.dir = words.at(2),
                             .options = parse_options(words.size() > 4 ? words[4] : std::string()),
                             .read_only = words.at(3) == "read_only",
                             .fresh = words.at(3) == "fresh",
                             .posix = &Posix::real(),
                             .notice = [](std::string_view text) { std::cerr << text << std::endl; }});
  if (!store) {
    std::cout << answer(store.error()) << std::endl;
    return 1;
  }
  std::cout << "open" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream rest(line);
    std::string command;
    rest >> command;
    if (command == "exit") return 0;
    std::cout << run(**store, command, rest) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace kvingest::test

int main(int argc, char* argv[]) {
  std::signal(SIGXFSZ, SIG_IGN);  // RLIMIT_FSIZE is then an error of the call.
  return kvingest::test::serve({argv, argv + argc});
}
