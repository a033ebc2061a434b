// kvq repair: stores damaged in many places.
//
// World: a store of known batches, each of which changes keys that others changed before; a copy of it is damaged in
// one place and repaired. Whatever is in the new store was once put under that key; where something is missing or
// older, that is said; what was there before is untouched.
#include <fmt/format.h>

#include <map>
#include <random>
#include <set>

#include "query/repair.hpp"
#include "tests/query/stores.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/json.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest {
namespace {

namespace fs = std::filesystem;
using test::Json;
using test::TempDir;

constexpr int kBatches = 40;
constexpr int kKeysEach = 25;

std::string key_of(int batch, int i) {
  return fmt::format("key {} of {}", i, batch % 8);
}
std::string value_of(int batch, int i) {
  return fmt::format("value {} of batch {}, {}", i, batch, std::string(60, static_cast<char>('a' + batch % 26)));
}

/// Batches on disk, each on its own; the last ones replace what the first ones put.
void write_batches(const std::string& engine, const fs::path& dir) {
  const auto store = test::created(engine, dir, {{"key", "{k}"}, {"format", "kv"}});
  for (int batch = 0; batch < kBatches; ++batch) {
    WriteBatch changes;
    for (int i = 0; i < kKeysEach; ++i) changes.put(key_of(batch, i), value_of(batch, i));
    changes.put_meta("progress", std::to_string(batch));
    REQUIRE_OK(store->write(changes, Durability::disk));
  }
  REQUIRE_OK(store->close());
}

/// Values that each key ever had.
std::map<std::string, std::set<std::string>> history() {
  std::map<std::string, std::set<std::string>> values;
  for (int batch = 0; batch < kBatches; ++batch) {
    for (int i = 0; i < kKeysEach; ++i) values[key_of(batch, i)].insert(value_of(batch, i));
  }
  return values;
}

test::Entries content(const fs::path& dir, Space space = Space::records) {
  const auto store = open_store({.dir = dir, .read_only = true, .create = false});
  REQUIRE_OK(store);
  REQUIRE_OK((*store)->verify());
  return test::entries_of(**store, space);
}

/// A store of known batches with room to damage copies of it.
class Patient {
 public:
  explicit Patient(const std::string& engine) : engine_(engine) {
    write_batches(engine, temp_ / "sound");
    sound_ = content(temp_ / "sound");
    renew();
  }

  void renew() {
    for (const char* name : {"db", "new", "new.lost"}) fs::remove_all(temp_ / name);
    fs::copy(temp_ / "sound", temp_ / "db", fs::copy_options::recursive);
  }

  [[nodiscard]] fs::path dir() const { return temp_ / "db"; }
  [[nodiscard]] fs::path target() const { return temp_ / "new"; }
  [[nodiscard]] const test::Entries& sound() const noexcept { return sound_; }

  void overwrite(const fs::path& name, std::uint64_t at, const std::string& bytes) const {
    std::string text = test::file_text(dir() / name);
    REQUIRE(at < text.size());
    text.replace(at, std::min<std::size_t>(bytes.size(), text.size() - at), bytes, 0,
                 std::min<std::size_t>(bytes.size(), text.size() - at));
    test::write_text(dir() / name, text);
  }

  [[nodiscard]] Result<void> repair(std::string* said = nullptr) const {
    const fs::path path = temp_ / "said";
    std::FILE* const file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    query::Output out(::fileno(file));
    auto done = query::print_repair(
        {dir(), target()}, [](std::string_view) {}, query::RowForm::text, out);
    std::fclose(file);
    if (said != nullptr) *said = test::file_text(path);
    return done;
  }

  /// Repairs, and holds what came out against what was put. False: nothing could be read, and that was said.
  bool check_repair() const {
    std::string said;
    const auto done = repair(&said);
    if (!done) {
      INFO(done.error().text);
      CHECK(done.error().code == Code::corrupt);
      CHECK_FALSE(fs::exists(target()));
      return false;
    }
    CAPTURE(said);
    if (said.starts_with("sound: ")) {
      CHECK_FALSE(fs::exists(target()));
      CHECK(content(dir()) == sound_);
      return true;
    }
    const auto found = content(target());
    const auto known = history();
    for (const auto& [key, value] : found) {
      CAPTURE(key, value);
      REQUIRE(known.count(key) == 1);
      REQUIRE(known.at(key).count(value) == 1);
    }
    if (found != sound_) CHECK(said.find("\nlost: ") != std::string::npos);
    CHECK(test::file_text(target().native() + ".lost/LOSSES").empty() == (said.find("\nlost: ") == std::string::npos));
    return true;
  }

 private:
  std::string engine_;
  TempDir temp_;
  test::Entries sound_;
};

std::vector<fs::path> files_of(const fs::path& dir) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    const fs::path name = entry.path().filename();
    // Nothing stands in these.
    if (!entry.is_regular_file() || name == "LOCK" || name == "lock.mdb" || name == "reserve" || name == "LOG")
      continue;
    if (fs::file_size(entry.path()) > 0) files.push_back(entry.path().lexically_relative(dir));
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Damages one place after the other; `bytes` are put there.
void damage_everywhere(const std::string& engine, const std::string& bytes, int places_each) {
  Patient patient(engine);
  std::random_device device;
  const auto seed = device();
  CAPTURE(engine, seed);
  std::mt19937_64 random(seed);
  int repaired = 0;
  for (const fs::path& name : files_of(patient.dir())) {
    const std::string text = test::file_text(patient.dir() / name);
    const std::size_t content_bytes = text.find_last_not_of('\0') + 1;
    std::vector<std::uint64_t> places = {0, 17, 70, content_bytes / 2, content_bytes - 1};
    for (int i = 0; i < places_each; ++i) places.push_back(random() % content_bytes);
    for (const std::uint64_t at : places) {
      if (at >= content_bytes) continue;
      CAPTURE(name, at);
      patient.renew();
      std::string other = bytes;
      if (other[0] == text[at]) other[0] = static_cast<char>(other[0] ^ 1);
      patient.overwrite(name, at, other);
      repaired += patient.check_repair() ? 1 : 0;
    }
  }
  fmt::print("{}: {} repairs, seed {}\n", engine, repaired, seed);
  CHECK(repaired > 0);
}

std::uint64_t place_of(const fs::path& file, const std::string& text) {
  const std::size_t at = test::file_text(file).find(text);
  REQUIRE(at != std::string::npos);
  return at;
}

bool has_engine(const std::string& wanted) {
  const auto engines = test::persistent_engines();
  return std::find(engines.begin(), engines.end(), wanted) != engines.end();
}

TEST_CASE("a sound store needs no repair, and none is made") {
  for (const std::string& engine : test::persistent_engines()) {
    INFO(engine);
    const Patient patient(engine);
    std::string said;
    REQUIRE_OK(patient.repair(&said));
    CHECK(said.find("sound: ") == 0);
    CHECK_FALSE(fs::exists(patient.target()));
  }
}

TEST_CASE("a damaged byte anywhere in a store mmap costs what it hit, and that is said") {
  damage_everywhere("mmap", "#", 10);
}

TEST_CASE("a damaged byte anywhere in a store file costs what it hit, and that is said") {
  damage_everywhere("file", "#", 10);
}

TEST_CASE("a damaged byte anywhere in a store rocksdb costs what it hit, and that is said") {
  if (has_engine("rocksdb")) damage_everywhere("rocksdb", "#", 1);
}

TEST_CASE("a stretch of damage anywhere in a store lmdb costs the pages it hit, and that is said") {
  // LMDB has no checksums: a byte of a value that changed is seen by nobody, bytes of a page's head are.
  if (has_engine("lmdb")) damage_everywhere("lmdb", std::string(8192, '#'), 8);
}

TEST_CASE("one lost batch of a log leaves its keys as they were before, and all others as they are") {
  Patient patient("mmap");
  const int lost = kBatches - 3;
  const std::uint64_t at = place_of(patient.dir() / "000001.log", value_of(lost, 7));
  patient.overwrite("000001.log", at, "#");
  std::string said;
  REQUIRE_OK(patient.repair(&said));
  CHECK(said.find("frames 38 to 38, batches 38 to 38 are missing") != std::string::npos);
  auto wanted = patient.sound();
  for (auto& [key, value] : wanted) {
    for (int i = 0; i < kKeysEach; ++i) {
      if (key == key_of(lost, i)) value = value_of(lost - 8, i);
    }
  }
  CHECK(content(patient.target()) == wanted);
  CHECK(content(patient.target(), Space::meta) == test::Entries{{"progress", std::to_string(kBatches - 1)}});
  CHECK(read_marker(patient.target())->labels == read_marker(patient.dir())->labels);
  // What was cut out is aside, as it was.
  bool aside = false;
  for (const auto& entry : fs::directory_iterator(patient.target().native() + ".lost"))
    aside = aside || test::file_text(entry.path()).find(value_of(lost, 8)) != std::string::npos;
  CHECK(aside);
}

TEST_CASE("one lost slot of a store file is counted, and set aside") {
  Patient patient("file");
  const std::uint64_t at = place_of(patient.dir() / "records.slots", value_of(kBatches - 1, 7));
  patient.overwrite("records.slots", at, "#");
  std::string said;
  REQUIRE_OK(patient.repair(&said));
  CAPTURE(said);
  CHECK(said.find("live slots are missing as of batch 40") != std::string::npos);
  auto wanted = patient.sound();
  std::erase_if(wanted, [](const auto& entry) { return entry.first == key_of(kBatches - 1, 7); });
  CHECK(content(patient.target()) == wanted);
}

TEST_CASE("a store whose marker is lost is known by its files") {
  for (const std::string& engine : test::persistent_engines()) {
    INFO(engine);
    Patient patient(engine);
    fs::remove(patient.dir() / "STORE");
    std::string said;
    REQUIRE_OK(patient.repair(&said));
    CHECK(said.find("the marker is missing: by its files this is a store " + engine) != std::string::npos);
    CHECK(content(patient.target()) == patient.sound());
  }
}

TEST_CASE("batches that had been answered and are gone are told") {
  for (const std::string engine : {"mmap", "file"}) {
    INFO(engine);
    Patient patient(engine);
    // The store of a moment before, with what was acknowledged since.
    Patient older(engine);
    const auto store = open_store({.dir = patient.dir()});
    REQUIRE_OK(store);
    WriteBatch more;
    more.put("later", "than all");
    REQUIRE_OK((*store)->write(more, Durability::disk));
    REQUIRE_OK((*store)->close());
    fs::copy_file(patient.dir() / "ACKED", older.dir() / "ACKED", fs::copy_options::overwrite_existing);
    std::string said;
    REQUIRE_OK(older.repair(&said));
    CHECK(said.find("batches 41 to 41 are missing at the end") != std::string::npos);
    CHECK(content(older.target()) == older.sound());
  }
}

TEST_CASE("repair makes nothing where it should not") {
  Patient patient("mmap");
  const auto kvq = [&](std::vector<std::string> more) {
    more.insert(more.begin(), "repair");
    return test::kvq(more, patient.dir());
  };
  CHECK(kvq({}).exit.code == 2);
  patient.overwrite("000001.log", place_of(patient.dir() / "000001.log", value_of(20, 7)), "#");

  fs::create_directory(patient.target());
  test::write_text(patient.target() / "mine", "x");
  const auto taken = kvq({"--to", patient.target().native()});
  CHECK(taken.exit.code == 3);
  CHECK(taken.err.find("is there already; name a new directory") != std::string::npos);
  CHECK(test::file_text(patient.target() / "mine") == "x");

  const auto inside = kvq({"--to", (patient.dir() / "new").native()});
  CHECK(inside.exit.code == 3);
  CHECK(inside.err.find("inside the damaged store's own directory") != std::string::npos);
  CHECK(test::kvq({"repair", "--to", "x"}, patient.target() / "none").exit.code == 3);

  fs::remove_all(patient.target());
  const auto done = kvq({"--to", patient.target().native(), "--json"});
  INFO(done.err);
  REQUIRE(done.exit.code == 0);
  const Json report = Json::parse(done.out);
  CHECK(report["losses"].size() > 0);
  CHECK(report["records"].number() == patient.sound().size());
  test::kvq_out({"verify"}, patient.target());
}

TEST_CASE("a store that is in use is not repaired") {
  Patient patient("mmap");
  const auto store = open_store({.dir = patient.dir()});
  REQUIRE_OK(store);
  const auto done = patient.repair();
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::locked);
}

}  // namespace
}  // namespace kvingest
