// ACKED: what an engine must not come back without. The engine is a fake one that claims what a test tells it.
#include "storage/acked.hpp"

#include <string>
#include <vector>

#include "kvingest/ledger.hpp"
#include "tests/storage/fake_engine.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/posix_fault.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest {
namespace {

using namespace std::string_literals;
using test::contains_text;
using test::fake_plan;
using test::PosixFault;

struct AckedWorld {
  AckedWorld() { fake_plan = {}; }
  [[nodiscard]] Result<std::unique_ptr<Store>> open(bool read_only = false, const Posix* posix = nullptr) {
    return open_store({.engine = &test::kFakeEngine},
                      {.dir = dir, .read_only = read_only, .posix = posix, .notice = [this](std::string_view text) {
                         notices.emplace_back(text);
                       }});
  }
  // Opens, writes one batch at each of `levels` and closes.
  void run(std::initializer_list<Durability> levels) {
    auto store = open();
    REQUIRE(store);
    for (const Durability level : levels) put(**store, level);
    REQUIRE((*store)->close());
  }
  static void put(Store& store, Durability level) {
    WriteBatch batch;
    batch.put("k", "v");
    batch.put_meta(kMetaSeq, encode_seq(1000 + store.last_batch()));
    REQUIRE(store.write(batch, level));
  }
  [[nodiscard]] Acked acked() const {
    const auto read = read_acked(Posix::real(), dir);
    REQUIRE(read);
    REQUIRE(*read);
    return **read;
  }

  test::TempDir temp;
  std::filesystem::path dir = temp / "data";
  std::vector<std::string> notices;
};

TEST_CASE("a copy is what the format page shows") {
  const AckedCopy copy = encode_acked({.acknowledged = {3, 700}, .on_disk = {2, 650}, .counter = 4});
  const std::string_view bytes(copy.data(), copy.size());
  CHECK(bytes.substr(0, 48) ==
        "kvacked1"
        "\x04\0\0\0\0\0\0\0"
        "\x03\0\0\0\0\0\0\0"
        "\xBC\x02\0\0\0\0\0\0"
        "\x02\0\0\0\0\0\0\0"
        "\x8A\x02\0\0\0\0\0\0"s);
  REQUIRE(decode_acked(bytes));
  CHECK(decode_acked(bytes)->on_disk.seq == 650);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed(bytes);
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    CHECK_FALSE(decode_acked(changed));
    CHECK_FALSE(decode_acked(bytes.substr(0, at)));
  }
}

TEST_CASE("each answer is noted with its batch and number, and what is on disk apart from it") {
  AckedWorld world;
  auto store = world.open();
  REQUIRE(store);
  AckedWorld::put(**store, Durability::disk);
  AckedWorld::put(**store, Durability::kernel);
  CHECK(world.acked().acknowledged.batch == 2);
  CHECK(world.acked().acknowledged.seq == 1001);
  CHECK(world.acked().on_disk.batch == 1);
  CHECK(world.acked().on_disk.seq == 1000);
  REQUIRE((*store)->sync());
  CHECK(world.acked().on_disk.batch == 2);
  AckedWorld::put(**store, Durability::memory);
  CHECK(world.acked().acknowledged.batch == 3);
  CHECK(world.acked().on_disk.batch == 2);
  REQUIRE((*store)->close());
  CHECK(world.acked().on_disk.batch == 3);
}

TEST_CASE("a store that comes back without batches that were on disk is refused, for readers too") {
  AckedWorld world;
  world.run({Durability::disk, Durability::disk, Durability::disk});
  fake_plan.last_batch = 1;
  for (const bool read_only : {false, true}) {
    const auto store = world.open(read_only);
    REQUIRE_FALSE(store);
    CHECK(store.error().code == Code::corrupt);
    CHECK_THAT(store.error().text, contains_text("2 acknowledged batches are missing"));
    CHECK_THAT(store.error().text, contains_text("batch 3 (up to record number 1002)"));
  }
  fake_plan.last_batch = 3;
  CHECK(world.open());
}

TEST_CASE("batches acknowledged below disk may go with the power: that is said, and numbering goes on") {
  AckedWorld world;
  {
    auto store = world.open();
    REQUIRE(store);
    AckedWorld::put(**store, Durability::disk);
    AckedWorld::put(**store, Durability::kernel);
    AckedWorld::put(**store, Durability::kernel);
    fake_plan.sync = fake_plan.write = Error{Code::failed, 0, "the power goes"};
    CHECK_FALSE((*store)->sync());
  }
  fake_plan.sync.reset();
  fake_plan.write.reset();
  fake_plan.last_batch = 1;
  world.run({});
  REQUIRE(world.notices.size() == 1);
  CHECK_THAT(world.notices[0], contains_text("last 2 batches"));
  CHECK(world.acked().on_disk.batch == 1);
  world.run({Durability::disk});
  CHECK(world.acked().on_disk.batch == 2);
}

TEST_CASE("a torn copy costs nothing that was synced before it, two damaged ones are refused") {
  AckedWorld world;
  world.run({Durability::disk});
  const std::uint64_t newest = world.acked().counter;
  std::string file = test::file_text(world.dir / "ACKED");
  REQUIRE(file.size() == 8192);
  file[newest % 2 * 4096 + 20] ^= 1;
  test::write_text(world.dir / "ACKED", file);
  CHECK(world.acked().counter == newest - 1);
  CHECK(world.open());
  file[(newest + 1) % 2 * 4096 + 20] ^= 1;
  test::write_text(world.dir / "ACKED", file);
  for (const bool read_only : {false, true}) {
    const auto store = world.open(read_only);
    REQUIRE_FALSE(store);
    CHECK(store.error().code == Code::corrupt);
    CHECK_THAT(store.error().text, contains_text("ACKED"));
  }
}

TEST_CASE("a missing file is made anew, and said") {
  AckedWorld world;
  world.run({Durability::disk});
  std::filesystem::remove(world.dir / "ACKED");
  CHECK(world.open(true));
  CHECK_FALSE(std::filesystem::exists(world.dir / "ACKED"));
  world.run({});
  REQUIRE(world.notices.size() == 1);
  CHECK_THAT(world.notices[0], contains_text("ACKED was missing"));
  CHECK(world.acked().acknowledged.batch == 1);
}

TEST_CASE("a write costs one small write, and a sync of its own at most once a second and only at disk") {
  AckedWorld world;
  PosixFault fault;
  auto store = world.open(false, &fault.table());
  REQUIRE(store);
  fault.start_trace();
  for (int i = 0; i < 20; ++i) AckedWorld::put(**store, Durability::kernel);
  CHECK(fault.trace() == std::vector<PosixFault::Call>(20, PosixFault::Call::pwrite));
  fault.start_trace();
  AckedWorld::put(**store, Durability::disk);
  CHECK(fault.trace() == std::vector<PosixFault::Call>{PosixFault::Call::pwrite, PosixFault::Call::fdatasync});
  const std::uint64_t syncs = fault.count(PosixFault::Call::fdatasync);
  for (int i = 0; i < 20; ++i) AckedWorld::put(**store, Durability::disk);
  CHECK(fault.count(PosixFault::Call::fdatasync) <= syncs + 1);  // One more only if this took longer than a second.
  store->reset();
}

TEST_CASE("no answer goes out that cannot be noted: the store fails") {
  AckedWorld world;
  PosixFault fault;
  auto store = world.open(false, &fault.table());
  REQUIRE(store);
  AckedWorld::put(**store, Durability::disk);
  fault.fail_next(PosixFault::Call::pwrite, ENOSPC);
  WriteBatch batch;
  batch.put("k", "v");
  const auto done = (*store)->write(batch, Durability::kernel);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Code::failed);
  CHECK((*store)->write(batch, Durability::kernel).error().code == Code::failed);
  store->reset();
  CHECK(world.open());
}

TEST_CASE("a backup promises what it holds") {
  AckedWorld world;
  auto store = world.open();
  REQUIRE(store);
  AckedWorld::put(**store, Durability::kernel);
  REQUIRE((*store)->backup(world.temp / "copy"));
  const auto copied = read_acked(Posix::real(), world.temp / "copy");
  REQUIRE(copied);
  REQUIRE(*copied);
  CHECK((*copied)->on_disk.batch == 1);
  CHECK((*copied)->on_disk.seq == 1000);
}

}  // namespace
}  // namespace kvingest
