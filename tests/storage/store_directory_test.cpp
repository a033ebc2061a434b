// Opening a store: the choice by name, the marker, the lock, and that nothing changes before every check has passed.
// The engine is a fake one, so that only the store directory is under test.
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>

#include "kvingest/engine.hpp"
#include "storage/marker.hpp"
#include "tests/storage/fake_engine.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/posix_fault.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest {
namespace {

namespace fs = std::filesystem;
using test::contains_text;
using test::fake_plan;
using test::kFakeEngine;

// Every file below `dir` with its content.
std::map<std::string, std::string> tree_of(const fs::path& dir) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    tree[entry.path().native()] = entry.is_regular_file() ? test::file_text(entry.path()) : "directory";
  }
  return tree;
}

Error error_of(const StoreOptions& options, const Engine& engine = kFakeEngine) {
  const auto store = open_store({.engine = &engine}, options);
  REQUIRE_FALSE(store);
  return store.error();
}

std::unique_ptr<Store> opened(const StoreOptions& options, const Engine& engine = kFakeEngine) {
  auto store = open_store({.engine = &engine}, options);
  if (!store) FAIL(store.error().text);
  return std::move(*store);
}

struct DirectoryWorld {
  DirectoryWorld() { fake_plan = {}; }
  test::TempDir temp;
  fs::path dir = temp / "data";
};

TEST_CASE("an unknown store is a wrong argument that names the nearest and all known ones") {
  const auto spec = parse_store_spec("nul");
  REQUIRE_FALSE(spec);
  CHECK(spec.error().code == Code::invalid_argument);
  CHECK_THAT(spec.error().text, contains_text("no such store 'nul'; did you mean null? known: null"));
  CHECK_THAT(parse_store_spec("NULL").error().text, contains_text("did you mean null?"));
  const auto far = parse_store_spec("postgresql");
  REQUIRE_FALSE(far);
  CHECK_THAT(far.error().text, !contains_text("did you mean") && contains_text("known: null"));
  CHECK_FALSE(parse_store_spec(""));
  CHECK(parse_store_spec("null"));
}

TEST_CASE("an unknown option of a store is a wrong argument, and so is one without its value") {
  CHECK_THAT(parse_store_spec("null,size=1").error().text, contains_text("store null has no option 'size'"));
  CHECK_THAT(parse_store_spec("null,").error().text, contains_text("has no option ''"));
}

TEST_CASE("a missing engine cannot be opened either, and says what to install") {
  const Engine missing{.name = "gone", .persistent = true, .missing = "libgone is not here: apt install libgone-dev"};
  const auto store = open_store({.engine = &missing}, {.dir = "/nonexistent"});
  REQUIRE_FALSE(store);
  CHECK(store.error().code == Code::unsupported);
  CHECK(store.error().text == "store 'gone' is not in this build: libgone is not here: apt install libgone-dev");
}

TEST_CASE("a new directory gets its marker and lock, and the engine is told that it is fresh") {
  DirectoryWorld world;
  opened({.dir = world.dir / "deep" / "", .labels = {{"key", "{seq}"}}});
  CHECK(fake_plan.seen.fresh);
  CHECK_FALSE(fake_plan.seen.read_only);
  CHECK(fake_plan.seen.posix != nullptr);
  const auto marker = read_marker(world.dir / "deep");
  REQUIRE(marker);
  CHECK(marker->engine == "fake");
  CHECK(marker->format_version == 3);
  CHECK(marker->ready);
  CHECK(marker->created.size() == sizeof "2026-01-01T00:00:00Z" - 1);
  CHECK(marker->labels.at("key") == "{seq}");
  CHECK(fs::exists(world.dir / "deep" / "LOCK"));

  opened({.dir = world.dir / "deep"});
  CHECK_FALSE(fake_plan.seen.fresh);
}

TEST_CASE("a marker comes back as it was, whatever its labels hold") {
  Marker marker{"mmap", 7, "2026-11-30T17:37:00Z", true, {{"key", "{a}/{b:010}"}, {"odd", "\x01\\ \n\x7F\xC3\xA4 "}}};
  const auto text = encode_marker(marker);
  REQUIRE(text);
  auto again = decode_marker(*text, "STORE");
  REQUIRE(again);
  CHECK(again->engine == "mmap");
  CHECK(again->format_version == 7);
  CHECK(again->created == marker.created);
  CHECK(again->ready);
  CHECK(again->labels == marker.labels);
  CHECK_FALSE(encode_marker({.engine = "mmap", .labels = {{"two words", ""}}}));
}

TEST_CASE("a marker with any byte changed or cut off is refused as corrupt or of a newer format") {
  const std::string whole =
      *encode_marker({"mmap", 1, "2026-11-30T17:37:00Z", true, {{"key", "{seq}"}, {"format", "line"}}});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    CHECK_FALSE(decode_marker(whole.substr(0, at), "STORE"));
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK_FALSE(decode_marker(changed, "STORE"));
  }
  const auto newer = decode_marker("kvingest store 2\nwhatever\n", "STORE");
  REQUIRE_FALSE(newer);
  CHECK(newer.error().code == Code::unsupported);
}

TEST_CASE("each check of an existing store fails with one clear sentence before a byte has changed") {
  DirectoryWorld world;
  REQUIRE(opened({.dir = world.dir, .labels = {{"key", "{seq}"}}})->close());
  const auto before = tree_of(world.temp.path());
  fake_plan = {};

  Error error = error_of({.dir = world.dir}, test::kOtherFakeEngine);
  CHECK(error.code == Code::invalid_argument);
  CHECK_THAT(error.text, contains_text("engine fake, not other") && contains_text(world.dir.native()));
  error = error_of({.dir = world.dir}, test::kNewerFakeEngine);
  CHECK(error.code == Code::unsupported);
  CHECK_THAT(error.text, contains_text("format 3") && contains_text("format 4"));
  error = error_of({.dir = world.dir, .labels = {{"key", "{symbol}"}}});
  CHECK(error.code == Code::invalid_argument);
  CHECK_THAT(error.text, contains_text("'{seq}'") && contains_text("'{symbol}'") && contains_text("--force-template"));
  CHECK(fake_plan.opens == 0);
  CHECK(tree_of(world.temp.path()) == before);
}

TEST_CASE("a format older than the engine's is refused as well") {
  DirectoryWorld world;
  opened({.dir = world.dir}, test::kNewerFakeEngine);
  CHECK_THAT(error_of({.dir = world.dir}).text, contains_text("a newer kvingest"));
}

TEST_CASE("labels can be replaced by force, and are added where there is none") {
  DirectoryWorld world;
  opened({.dir = world.dir, .labels = {{"key", "{seq}"}}});
  opened({.dir = world.dir, .labels = {{"key", "{symbol}"}, {"format", "csv"}}, .force_labels = true});
  const auto marker = read_marker(world.dir);
  REQUIRE(marker);
  CHECK(marker->labels.at("key") == "{symbol}");
  CHECK(marker->labels.at("format") == "csv");
  CHECK(marker->labels.at("key.was") == "{seq}");
  opened({.dir = world.dir, .labels = {{"columns", "a,b"}}});
  CHECK(read_marker(world.dir)->labels.size() == 4);
}

TEST_CASE("a directory with foreign files is refused and left alone") {
  DirectoryWorld world;
  fs::create_directory(world.dir);
  test::write_text(world.dir / "thesis.txt", "years of work");
  const auto before = tree_of(world.temp.path());
  const Error error = error_of({.dir = world.dir});
  CHECK(error.code == Code::invalid_argument);
  CHECK_THAT(error.text, contains_text("thesis.txt"));
  CHECK(tree_of(world.temp.path()) == before);

  const Error file = error_of({.dir = world.dir / "thesis.txt"});
  CHECK(file.code == Code::invalid_argument);
  CHECK_THAT(file.text, contains_text("not a directory"));
}

TEST_CASE("what a new file system and an interrupted creation leave does not stand in the way") {
  DirectoryWorld world;
  fs::create_directories(world.dir / "lost+found");
  test::write_text(world.dir / "LOCK", "");
  test::write_text(world.dir / "STORE.tmp", "half a mar");
  opened({.dir = world.dir});
  CHECK(fake_plan.seen.fresh);
}

TEST_CASE("a store whose engine could not be made stays fresh, and readers do not take it for one") {
  DirectoryWorld world;
  fake_plan.open = Error{Code::no_space, 0, "no room"};
  CHECK(error_of({.dir = world.dir}).code == Code::no_space);
  fake_plan.open.reset();
  REQUIRE(read_marker(world.dir));
  CHECK_FALSE(read_marker(world.dir)->ready);
  CHECK_THAT(error_of({.dir = world.dir, .read_only = true}).text, contains_text("no store in"));
  opened({.dir = world.dir, .labels = {{"key", "new"}}});
  CHECK(fake_plan.seen.fresh);
  CHECK(read_marker(world.dir)->labels.at("key") == "new");
}

TEST_CASE("nothing is made where it must not be") {
  DirectoryWorld world;
  const Error no_create = error_of({.dir = world.dir, .create = false});
  CHECK(no_create.code == Code::invalid_argument);
  CHECK_THAT(no_create.text, contains_text("no store in") && contains_text("no such directory"));
  CHECK(error_of({.dir = world.dir, .read_only = true}).code == Code::invalid_argument);
  CHECK(error_of({.dir = ""}).code == Code::invalid_argument);
  CHECK_FALSE(fs::exists(world.dir));
  CHECK_FALSE(read_marker(world.dir));
}

TEST_CASE("reading changes no byte, and the engine is told to change none") {
  DirectoryWorld world;
  opened({.dir = world.dir, .labels = {{"key", "{seq}"}}});
  const auto before = tree_of(world.temp.path());
  {
    const auto store = opened({.dir = world.dir, .read_only = true, .labels = {{"more", "labels"}}});
    CHECK(fake_plan.seen.read_only);
    WriteBatch batch;
    batch.put("k", "v");
    CHECK(store->write(batch, Durability::disk).error().code == Code::invalid_argument);
    CHECK(store->compact().error().code == Code::invalid_argument);
    CHECK(tree_of(world.temp.path()) == before);
  }
  CHECK(tree_of(world.temp.path()) == before);
}

TEST_CASE("a writer excludes others, in its own process too, and the message names its pid") {
  DirectoryWorld world;
  auto writer = opened({.dir = world.dir});
  for (const bool read_only : {false, true}) {
    const Error error = error_of({.dir = world.dir, .read_only = read_only});
    CHECK(error.code == Code::locked);
    CHECK_THAT(error.text, contains_text(fmt::format("{} is in use by pid {}", world.dir.native(), ::getpid())));
  }
  REQUIRE(writer->close());
  opened({.dir = world.dir});
}

TEST_CASE("readers exclude a writer but not each other, and no stale pid is named") {
  DirectoryWorld world;
  opened({.dir = world.dir});
  const auto one = opened({.dir = world.dir, .read_only = true});
  const auto two = opened({.dir = world.dir, .read_only = true});
  const Error error = error_of({.dir = world.dir});
  CHECK(error.code == Code::locked);
  CHECK_THAT(error.text, contains_text("in use by a process that reads it"));
}

TEST_CASE("engines with shared readers are read while somebody writes") {
  DirectoryWorld world;
  const auto writer = opened({.dir = world.dir}, test::kSharedFakeEngine);
  const auto reader = opened({.dir = world.dir, .read_only = true}, test::kSharedFakeEngine);
  CHECK(error_of({.dir = world.dir}, test::kSharedFakeEngine).code == Code::locked);
}

TEST_CASE("the lock of a killed process is free, whatever pid is in it") {
  DirectoryWorld world;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto store = open_store({.engine = &kFakeEngine}, {.dir = world.dir});
    const char byte = store ? 'y' : 'n';
    static_cast<void>(!::write(ready[1], &byte, 1));
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  REQUIRE(byte == 'y');
  CHECK_THAT(error_of({.dir = world.dir}).text, contains_text(fmt::format("pid {}", child)));
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  ::close(ready[0]);
  ::close(ready[1]);
  CHECK_FALSE(test::file_text(world.dir / "LOCK").empty());
  opened({.dir = world.dir});
}

// Lets the n-th system call of the creation of a store fail, for every n, and opens the same directory again.
void interrupt_creation(const DirectoryWorld& world, const Engine& engine) {
  test::PosixFault fault;
  bool made = false;
  for (std::uint64_t n = 1; !made; ++n) {
    REQUIRE(n < 200);
    const fs::path dir = world.temp / fmt::format("{}{}", engine.name, n);
    fault.fail_nth(n, n % 2 == 0 ? ENOSPC : EIO);
    auto store = open_store({.engine = &engine}, {.dir = dir, .posix = &fault.table()});
    made = !fault.has_failed();
    fault.heal();
    if (store) {
      CHECK((*store)->close());
    } else {
      CHECK((store.error().code == Code::io_error || store.error().code == Code::no_space));
      CHECK_THAT(store.error().text, contains_text(world.temp.path().native()));
    }
    store = open_store({.engine = &engine}, {.dir = dir});
    INFO("call " << n << (store ? std::string() : ": " + store.error().text));
    REQUIRE(store);
    CHECK((*store)->last_batch() == 0);
    REQUIRE(read_marker(dir));
    CHECK(read_marker(dir)->ready);
  }
}

TEST_CASE("every system call of the creation may fail: the next open begins afresh or finds the whole store") {
  const DirectoryWorld world;
  interrupt_creation(world, kFakeEngine);
  for (const Engine* engine : engines()) {  // Those that make their files through the table.
    if (engine->name == "file" || engine->name == "mmap") interrupt_creation(world, *engine);
  }
}

TEST_CASE("a backup is a store of its own") {
  DirectoryWorld world;
  const auto store = opened({.dir = world.dir, .labels = {{"key", "{seq}"}}});
  const fs::path copy = world.temp / "copy";
  fs::create_directory(copy);
  REQUIRE(store->backup(copy));
  CHECK(read_marker(copy)->labels.at("key") == "{seq}");
  opened({.dir = copy, .read_only = true});
  CHECK_FALSE(fake_plan.seen.fresh);
  const auto again = store->backup(copy);
  REQUIRE_FALSE(again);
  CHECK(again.error().code == Code::invalid_argument);
}

TEST_CASE("a directory without permission is named") {
  DirectoryWorld world;
  opened({.dir = world.dir});
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // As nobody, where we are root.
    ::chmod(world.dir.c_str(), 0700);
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(77);
    if (::getuid() != 65534) ::chmod(world.dir.c_str(), 0);
    const auto store = open_store({.engine = &kFakeEngine}, {.dir = world.dir});
    const bool named = !store && store.error().code == Code::io_error &&
                       store.error().text.find(world.dir.native()) != std::string::npos &&
                       store.error().text.find("ermission denied") != std::string::npos;
    ::_exit(named ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ::chmod(world.dir.c_str(), 0755);
  CHECK(status == 0);
}

}  // namespace
}  // namespace kvingest
