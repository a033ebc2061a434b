// The contract of kvingest/store.hpp and kvingest/engine.hpp, on every engine: opening, closing, and coming back.
//
// World: store directories of a test's own; the second process is test_store_tool.
#include <fmt/format.h>

#include <atomic>
#include <sstream>
#include <thread>

#include "base/posix.hpp"
#include "storage/marker.hpp"
#include "tests/storage/campaign.hpp"
#include "tests/storage/scenario.hpp"
#include "tests/support/process.hpp"

namespace kvingest::test {
namespace {

using Kind = Operation::Kind;

constexpr std::uint64_t kSeed = 7;  // What is written matters little here.

std::vector<std::string> tool(const Subject& subject, std::string command, std::vector<std::string> more = {}) {
  std::vector<std::string> words{program("test_store_tool"), std::move(command), std::string(subject.engine().name),
                                 subject.dir().native()};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void write_campaign(Store& store, std::uint64_t last) {
  for (std::uint64_t number = store.last_batch() + 1; number <= last; ++number) {
    write(store, campaign_batch({kSeed}, number), campaign_first(number));
  }
}

Model campaign_model(std::uint64_t last) {
  return CampaignModel({kSeed}).after(last);
}

/// Holds the directory against what it was. LMDB's table of readers is memory shared by processes, not data: reading
/// writes there, and must.
void check_unchanged(const std::filesystem::path& dir, const std::vector<std::pair<std::string, std::string>>& before) {
  const auto after = tree(dir);
  REQUIRE(after.size() == before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    CAPTURE(before[i].first);
    CHECK(after[i].first == before[i].first);
    const bool same_bytes = after[i].second == before[i].second;
    if (before[i].first != "lock.mdb") CHECK(same_bytes);
  }
}

std::string unhex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

/// What `test_store_tool dump` printed, as rows of both spaces.
std::map<std::string, Rows> parse_dump(const std::string& text) {
  std::map<std::string, Rows> spaces;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string space, key, value;
    std::getline(std::getline(std::getline(words, space, ' '), key, ' '), value);
    spaces[space].emplace_back(space == "last_batch" ? key : unhex(key), unhex(value));
  }
  return spaces;
}

ENGINE_SCENARIO(anything, "after close every call is refused, but closing again is fine") {
  auto store = subject.open();
  put(*store, "k", "v");
  close(*store);
  WriteBatch batch;
  batch.put("late", "v");
  const auto no_value = [](std::string_view) { FAIL("a value from a closed store"); };
  const auto no_entry = [](std::string_view, std::string_view) { return true; };
  const std::string_view keys[] = {"k"};
  CHECK_CODE(store->write(batch, Durability::memory), Code::invalid_argument);
  CHECK_CODE(store->get("k", no_value), Code::invalid_argument);
  CHECK_CODE(store->multi_get(keys, [](std::size_t, std::string_view) {}), Code::invalid_argument);
  CHECK_CODE(store->scan({}, no_entry), Code::invalid_argument);
  CHECK_CODE(store->scan(Space::meta, {}, no_entry), Code::invalid_argument);
  CHECK_CODE(store->sync(), Code::invalid_argument);
  CHECK_CODE(store->count(), Code::invalid_argument);
  CHECK_CODE(store->verify(), Code::invalid_argument);
  CHECK_CODE(store->compact(), Code::invalid_argument);
  CHECK_CODE(store->backup(subject.temp() / "backup"), Code::invalid_argument);
  CHECK_OK(store->close());
}

ENGINE_SCENARIO(persistent, "a store opened again holds what was written, and goes on counting") {
  for (std::uint64_t last : {1u, 2u, 30u, 31u, 60u}) {
    auto store = subject.open();
    write_campaign(*store, last);
    close(*store);
    store = subject.open();
    CHECK(store->last_batch() == last);
    check_equal(*store, campaign_model(last));
    close(*store);
  }
}

ENGINE_SCENARIO(persistent, "a store dropped without close holds what was acknowledged") {
  for (const Durability level : {Durability::memory, Durability::kernel, Durability::disk}) {
    {
      auto store = subject.open();
      put(*store, to_string(level), "kept", level);
    }
    auto store = subject.open();
    CHECK(get(*store, to_string(level)) == "kept");
    close(*store);
  }
}

ENGINE_SCENARIO(persistent, "an empty batch counts after opening again, too") {
  auto store = subject.open();
  put(*store, "k", "v");
  write(*store, WriteBatch());
  write(*store, WriteBatch(), Durability::disk);
  close(*store);
  CHECK(subject.open()->last_batch() == 3);
}

ENGINE_SCENARIO(persistent, "what one process wrote another reads, and the other way round") {
  {
    auto store = subject.open();
    write_campaign(*store, 20);
    close(*store);
  }
  const Finished dumped = run(tool(subject, "dump"));
  CAPTURE(dumped.err);
  REQUIRE(dumped.exit.code == 0);
  auto spaces = parse_dump(dumped.out);
  const Model model = campaign_model(20);
  CHECK(spaces["last_batch"].at(0).first == "20");
  const bool same_records = spaces["record"] == model.scan(Space::records, {});
  const bool same_meta = spaces["meta"] == model.scan(Space::meta, {});
  CHECK(same_records);
  CHECK(same_meta);

  const Finished written = run(tool(subject, "write", {"disk", std::to_string(kSeed), "40"}));
  CAPTURE(written.err);
  REQUIRE(written.exit.code == 0);
  auto store = subject.open();
  CHECK(store->last_batch() == 40);
  check_equal(*store, campaign_model(40));
}

ENGINE_SCENARIO(persistent, "a second opener is refused and told who has it, in this process and in another") {
  {
    auto store = subject.open();
    CHECK_CODE(subject.try_open(), Code::locked);
    const Finished refused = run(tool(subject, "dump"));
    CHECK(refused.exit.code == 1);
    CHECK(refused.err.find(fmt::format("locked: ")) == 0);
    CHECK(refused.err.find(std::to_string(::getpid())) != std::string::npos);
    put(*store, "k", "still mine");
    close(*store);
  }
  Process holder(tool(subject, "hold"), {.pipe_input = true, .pipe_output = true});
  REQUIRE(holder.output().read_line() == "open");
  const auto second = subject.try_open();
  REQUIRE_CODE(second, Code::locked);
  CHECK(second.error().text.find(std::to_string(holder.pid())) != std::string::npos);
  const auto reader = subject.try_open({.read_only = true});
  if (subject.engine().shared_readers) {
    REQUIRE_OK(reader);
    CHECK(get(**reader, "k") == "still mine");
    CHECK_OK((*reader)->close());
  } else {
    REQUIRE_CODE(reader, Code::locked);
    CHECK(reader.error().text.find(std::to_string(holder.pid())) != std::string::npos);
  }
  holder.input().close();
  CHECK(holder.finish() == Exit{0, 0});
  CHECK(get(*subject.open(), "k") == "still mine");
}

ENGINE_SCENARIO(persistent, "the lock goes with the process that had it, also by kill -9") {
  Process holder(tool(subject, "hold"), {.pipe_input = true, .pipe_output = true});
  REQUIRE(holder.output().read_line() == "open");
  holder.kill();
  CHECK_OK(subject.try_open());
}

ENGINE_SCENARIO(persistent, "the directory of another engine is refused unchanged, and the engine named") {
  {
    auto store = subject.open();
    put(*store, "k", "v");
    close(*store);
  }
  const auto before = tree(subject.dir());
  for (const Engine* other : engines()) {
    if (other == &subject.engine() || !other->persistent || !other->missing.empty()) continue;
    const auto refused = open_store({other, {}}, {.dir = subject.dir()});
    REQUIRE_CODE(refused, Code::invalid_argument);
    CHECK(refused.error().text.find(subject.engine().name) != std::string::npos);
  }
  check_unchanged(subject.dir(), before);
  auto by_marker = open_store({.dir = subject.dir()});
  REQUIRE_OK(by_marker);
  CHECK(get(**by_marker, "k") == "v");
}

ENGINE_SCENARIO(persistent, "a store of a newer or an older format is refused unchanged") {
  {
    auto store = subject.open();
    put(*store, "k", "v");
    close(*store);
  }
  const auto marker = read_marker(subject.dir());
  REQUIRE_OK(marker);
  for (const std::uint32_t format : {marker->format_version + 1, marker->format_version - 1}) {
    Marker other = *marker;
    other.format_version = format;
    REQUIRE_OK(write_marker(Posix::real(), subject.dir(), other));
    const auto before = tree(subject.dir());
    const auto refused = subject.try_open();
    REQUIRE_CODE(refused, Code::unsupported);
    CHECK(refused.error().text.find(std::to_string(format)) != std::string::npos);
    CHECK_CODE(subject.try_open({.read_only = true}), Code::unsupported);
    check_unchanged(subject.dir(), before);
  }
  REQUIRE_OK(write_marker(Posix::real(), subject.dir(), *marker));
  CHECK(get(*subject.open(), "k") == "v");
}

ENGINE_SCENARIO(persistent, "a directory with foreign files and no marker is refused unchanged") {
  std::filesystem::create_directory(subject.dir());
  write_text(subject.dir() / "holiday.jpg", "precious");
  const auto before = tree(subject.dir());
  CHECK_CODE(subject.try_open(), Code::invalid_argument);
  CHECK_CODE(subject.try_open({.read_only = true}), Code::invalid_argument);
  check_unchanged(subject.dir(), before);
}

ENGINE_SCENARIO(persistent, "a store that must exist is not made") {
  CHECK_CODE(subject.try_open({.create = false}), Code::invalid_argument);
  CHECK_CODE(subject.try_open({.read_only = true}), Code::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(subject.dir()));
}

ENGINE_SCENARIO(persistent, "opening read-only changes no byte and refuses to write") {
  {
    auto store = subject.open();
    write_campaign(*store, 25);
    close(*store);
  }
  const auto before = tree(subject.dir());
  {
    auto store = subject.open_read_only();
    CHECK(store->last_batch() == 25);
    check_equal(*store, campaign_model(25));
    WriteBatch batch;
    batch.put("k", "v");
    CHECK_CODE(store->write(batch, Durability::memory), Code::invalid_argument);
    CHECK_OK(store->verify());
    close(*store);
  }
  check_unchanged(subject.dir(), before);
}

ENGINE_SCENARIO(persistent, "reading a store that a crash left changes no byte either") {
  Process child(tool(subject, "campaign", {"kernel", std::to_string(kSeed)}), {.pipe_output = true});
  std::uint64_t acknowledged = 0;
  while (acknowledged < 30) {
    const auto line = child.output().read_line();
    REQUIRE(line.has_value());
    if (line->front() == 'a') acknowledged = std::stoull(line->substr(2));
  }
  child.kill();
  const auto before = tree(subject.dir());
  for (int look = 0; look < 2; ++look) {
    auto store = subject.open_read_only();
    CHECK(store->last_batch() >= acknowledged);
    check_equal(*store, campaign_model(store->last_batch()));
    close(*store);
    check_unchanged(subject.dir(), before);
  }
}

ENGINE_SCENARIO(persistent, "labels are kept, and another value is refused until it is forced") {
  {
    auto store = subject.open({.labels = {{"key", "{seq}"}}});
    close(*store);
  }
  const auto refused = subject.try_open({.labels = {{"key", "{name}"}}});
  REQUIRE_CODE(refused, Code::invalid_argument);
  CHECK(refused.error().text.find("{seq}") != std::string::npos);
  CHECK(refused.error().text.find("{name}") != std::string::npos);
  CHECK_OK(subject.try_open({.labels = {{"key", "{seq}"}}}));
  CHECK_OK(subject.try_open({.labels = {{"key", "{name}"}}, .force_labels = true}));
  const auto marker = read_marker(subject.dir());
  REQUIRE_OK(marker);
  CHECK(marker->engine == subject.engine().name);
  CHECK(marker->format_version == subject.engine().format_version);
  CHECK(marker->labels.at("key") == "{name}");
  CHECK(marker->ready);
}

ENGINE_SCENARIO(kept, "a sound store is verified as sound, and its numbers are told") {
  auto store = subject.open();
  write_campaign(*store, 30);
  const auto report = store->verify();
  REQUIRE_OK(report);
  CHECK(report->records == campaign_model(30).space(Space::records).size());
  CHECK(report->torn_tail.empty());
  if (subject.engine().persistent) CHECK(report->bytes_checked > 0);
  std::vector<std::string> names;
  store->stats([&](std::string_view name, std::uint64_t) { names.emplace_back(name); });
  CHECK_FALSE(names.empty());
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

ENGINE_SCENARIO(kept, "compaction changes nothing that is read, now or later") {
  auto store = subject.open();
  write_campaign(*store, 150);
  CHECK_OK(store->compact());
  check_equal(*store, campaign_model(150));
  write_campaign(*store, 170);
  check_equal(*store, campaign_model(170));
  if (!subject.engine().persistent) return;
  CHECK_OK(store->compact());
  close(*store);
  store = subject.open();
  CHECK(store->last_batch() == 170);
  check_equal(*store, campaign_model(170));
}

ENGINE_SCENARIO(persistent, "a backup is a store of its own, as of one moment") {
  auto store = subject.open();
  write_campaign(*store, 20);
  const auto backup = subject.temp() / "backup";
  REQUIRE_OK(store->backup(backup));
  CHECK_FALSE(store->backup(backup).has_value());  // It is there already.
  write_campaign(*store, 30);
  auto copy = open_store({.dir = backup});
  REQUIRE_OK(copy);
  CHECK((*copy)->last_batch() == 20);
  check_equal(**copy, campaign_model(20));
  put(**copy, "only here", "v");
  CHECK(get(*store, "only here") == std::nullopt);
  check_equal(*store, campaign_model(30));
}

ENGINE_SCENARIO(persistent, "a backup made while batches are written holds a prefix of them") {
  auto store = subject.open();
  write_campaign(*store, 10);
  std::atomic<bool> done{false};
  std::atomic<bool> failed{false};
  std::thread writer([&] {
    for (std::uint64_t number = 11; number <= 400 && !done; ++number) {
      const auto written =
          store->write(to_batch(campaign_batch({kSeed}, number), campaign_first(number)), Durability::memory);
      if (!written) failed = true;
    }
  });
  const auto backup = subject.temp() / "backup";
  const auto made = store->backup(backup);
  done = true;
  writer.join();
  REQUIRE_OK(made);
  CHECK_FALSE(failed);
  auto copy = open_store({.dir = backup, .read_only = true});
  REQUIRE_OK(copy);
  CHECK((*copy)->last_batch() >= 10);
  check_equal(**copy, campaign_model((*copy)->last_batch()));
}

ENGINE_SCENARIO(anything, "an unknown option is refused, and the known ones are listed") {
  const auto refused = parse_store_spec(fmt::format("{},no-such-option=1", subject.engine().name));
  REQUIRE_CODE(refused, Code::invalid_argument);
  CHECK(refused.error().text.find("no-such-option") != std::string::npos);
  for (const EngineOption& option : subject.engine().options) {
    CHECK(refused.error().text.find(option.name) != std::string::npos);
  }
}

ENGINE_SCENARIO(anything, "an engine that keeps nothing makes no directory") {
  auto store = subject.open();
  put(*store, "k", "v");
  close(*store);
  CHECK(std::filesystem::exists(subject.dir()) == subject.engine().persistent);
  if (subject.engine().persistent) return;
  CHECK(get(*subject.open(), "k") == std::nullopt);
  std::size_t left_out = 0;
  for (const ScenarioInfo& each : scenarios()) left_out += applies(subject.engine(), each.needs) ? 0 : 1;
  fmt::print("store {}: {} scenarios about persistence or kept values do not apply to it\n", subject.engine().name,
             left_out);
}

}  // namespace
}  // namespace kvingest::test
