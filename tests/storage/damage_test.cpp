// Files are cut and bits are flipped: what a store then gives is right, or an error. Never wrong data, never a crash.
//
// World: a small store of the two formats that are ours, closed properly or as kill -9 leaves it; each try damages a
// fresh copy of it in one place and reads all of it.
#include <fmt/format.h>

#include <random>

#include "tests/storage/campaign.hpp"
#include "tests/storage/scenario.hpp"

namespace kvingest::test {
namespace {

constexpr Campaign kDamageCampaign{17, true};
constexpr std::uint64_t kDamageBatches = 8;
constexpr std::size_t kHeaderBytes = 256;  // What is tried byte by byte at the front of a file ...
constexpr std::size_t kTailBytes = 600;    // ... and at the end of what it holds: the last records.

/// A store after kDamageBatches batches; without `closed`, a copy of its files while it is open: what kill -9 would
/// leave.
std::filesystem::path make_store(const Subject& subject, Durability level, bool closed) {
  auto copy = subject.temp() / "sound";
  auto store = subject.open();
  for (std::uint64_t number = 1; number <= kDamageBatches; ++number) {
    write(*store, to_batch(campaign_batch(kDamageCampaign, number), campaign_first(number)), level);
  }
  if (closed) close(*store);
  std::filesystem::copy(subject.dir(), copy, std::filesystem::copy_options::recursive);
  return copy;
}

enum class Finding { sound, refused, prefix };

/// Reads everything the store gives and holds it against the batches it claims to have.
Finding read_all(const Subject& subject) {
  const auto store = subject.try_open({.read_only = true});
  if (!store) return Finding::refused;
  const std::uint64_t found = (*store)->last_batch();
  REQUIRE(found <= kDamageBatches);
  CampaignModel model(kDamageCampaign);
  const Model& wanted = model.after(found);
  bool refused = false;
  for (const Space space : {Space::records, Space::meta}) {
    Rows rows;
    const auto passed = (*store)->scan(space, {}, [&](std::string_view key, std::string_view value) {
      rows.emplace_back(key, value);
      return true;
    });
    refused = refused || !passed;
    const Rows all = wanted.scan(space, {});
    // A scan that ends in an error may have passed sound entries before it.
    const bool right = rows.size() <= all.size() && std::equal(rows.begin(), rows.end(), all.begin());
    REQUIRE(right);
    if (passed) REQUIRE(rows.size() == all.size());
  }
  if (refused) return Finding::refused;
  return found == kDamageBatches ? Finding::sound : Finding::prefix;
}

/// Where a file's content ends, zeros behind it left out.
std::size_t content_bytes(const std::string& text) {
  const auto last = text.find_last_not_of('\0');
  return last == std::string::npos ? 0 : last + 1;
}

/// The places of a file that are tried: its front, its last records, and some between them.
std::vector<std::size_t> places(const std::string& text, std::mt19937_64& random) {
  const std::size_t content = content_bytes(text);
  const std::size_t step = torture_rounds(1) > 1 ? 1 : 7;  // The short form tries every 7th byte, from a random one on.
  std::vector<std::size_t> found;
  for (std::size_t at = random() % step; at < content; at += step) {
    const bool edge = at < kHeaderBytes || at + kTailBytes >= content;
    if (edge || random() % 16 == 0) found.push_back(at);
  }
  return found;
}

using Damage = std::string (*)(std::string text, std::size_t at, std::mt19937_64& random);

std::string flip_a_bit(std::string text, std::size_t at, std::mt19937_64& random) {
  text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
  return text;
}

std::string cut(std::string text, std::size_t at, std::mt19937_64&) {
  text.resize(at);
  return text;
}

struct Tally {
  std::size_t sound = 0;
  std::size_t refused = 0;
  std::size_t prefix = 0;
};

Tally damage_everywhere(const Subject& subject, const std::filesystem::path& sound, Damage damage) {
  const std::uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  Tally tally;
  for (const auto& [name, text] : tree(sound)) {
    for (const std::size_t at : places(text, random)) {
      CAPTURE(name, at, seed);
      std::filesystem::remove_all(subject.dir());
      std::filesystem::copy(sound, subject.dir(), std::filesystem::copy_options::recursive);
      write_text(subject.dir() / name, damage(text, at, random));
      const Finding finding = read_all(subject);
      ++(finding == Finding::sound ? tally.sound : finding == Finding::refused ? tally.refused : tally.prefix);
    }
  }
  print_rounds(tally.sound + tally.refused + tally.prefix,
               fmt::format("damaged copies of {}: {} still whole, {} refused, {} an exact prefix, seed {}",
                           subject.engine().name, tally.sound, tally.refused, tally.prefix, seed));
  return tally;
}

/// LMDB has no checksums to find a flipped bit by, and RocksDB's files are tried by its own project.
bool has_our_format(const Subject& subject) {
  if (makes_our_calls(subject.engine())) return true;
  fmt::print("store {}: its files are not of our format\n", subject.engine().name);
  return false;
}

ENGINE_SCENARIO(persistent, "a flipped bit in a closed store is found, or changes nothing") {
  if (!has_our_format(subject)) return;
  subject.use_small_files();
  const Tally tally = damage_everywhere(subject, make_store(subject, Durability::disk, true), flip_a_bit);
  CHECK(tally.prefix == 0);  // All was on disk: less than that is damage, and must be said.
  CHECK(tally.refused > 0);
}

ENGINE_SCENARIO(persistent, "a closed store that was cut is found, or still whole") {
  if (!has_our_format(subject)) return;
  subject.use_small_files();
  const Tally tally = damage_everywhere(subject, make_store(subject, Durability::disk, true), cut);
  CHECK(tally.prefix == 0);
  CHECK(tally.refused > 0);
}

ENGINE_SCENARIO(persistent, "a store that kill -9 left and that was cut gives an exact prefix, or an error") {
  if (!has_our_format(subject)) return;
  subject.use_small_files();
  const Tally tally = damage_everywhere(subject, make_store(subject, Durability::kernel, false), cut);
  CHECK(tally.prefix + tally.refused > 0);
}

}  // namespace
}  // namespace kvingest::test
