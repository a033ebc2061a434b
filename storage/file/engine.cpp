// engine.cpp -- the file engine's row: its options, and how its file is made and opened.
#include <array>
#include <bit>
#include <cerrno>
#include <memory>
#include <random>
#include <utility>

#include "base/quantity.hpp"
#include "storage/engine_rows.hpp"
#include "storage/file/backup.hpp"
#include "storage/file/file_store.hpp"

namespace kvingest {
namespace {

using slots::kSlotBytesMax;
using slots::kSlotBytesMin;

constexpr std::string_view kSlotOption = "slot";

constexpr std::array kOptions = {
    EngineOption{
        .name = kSlotOption,
        .fallback = "64",
        .meaning = "bytes of a slot in a new store, a power of two from 64 to 4096; a record takes one or more"},
};

/// The size that was asked for, or the smallest one.
Result<std::uint32_t> slot_bytes_of(const EngineOptions& options) {
  const auto given = options.find(kSlotOption);
  if (given == options.end()) return kSlotBytesMin;
  const auto bytes = parse_size(given->second);
  if (!bytes) return fail(bytes.error(), "option slot of store file");
  if (*bytes < kSlotBytesMin || *bytes > kSlotBytesMax || !std::has_single_bit(*bytes)) {
    return fail(Code::invalid_argument, "option slot of store file: {} is not a power of two from {} to {}",
                given->second, kSlotBytesMin, kSlotBytesMax);
  }
  return static_cast<std::uint32_t>(*bytes);
}

Result<void> check_file(const EngineOptions& options) {
  KV_TRY(slot_bytes_of(options));
  return {};
}

Result<void> create_file(const Posix& posix, const std::filesystem::path& path, std::uint32_t slot_bytes) {
  std::random_device random;
  const std::uint64_t seed = std::uint64_t{random()} << 32 | random();
  return slots::create_slots(posix, path, {.geometry = {.slot_bytes = slot_bytes, .seed = seed}, .generation = 1});
}

void say_what_was_found(const EngineContext& context, const slots::Recovered& found, std::uint32_t slot_bytes) {
  const std::uint32_t actual = found.header.geometry.slot_bytes;
  if (context.options.contains(kSlotOption) && slot_bytes != actual) {
    context.notice(fmt::format("slot={} is only for new stores; the slots in {} have {} bytes", slot_bytes,
                               context.dir.native(), actual));
  }
  if (!found.remark.empty()) context.notice(found.remark);
  if (!found.torn_tail.empty()) context.notice(found.torn_tail);
}

Result<std::unique_ptr<Store>> open_file(const EngineContext& context) {
  const auto slot_bytes = slot_bytes_of(context.options);
  KV_TRY(slot_bytes);
  const std::filesystem::path path = context.dir / slots::kFileName;
  if (context.fresh && !context.read_only) KV_TRY(create_file(*context.posix, path, *slot_bytes));
  auto file = slots::SlotFile::open(*context.posix, path, context.read_only ? O_RDONLY : O_RDWR);
  if (!file && file.error().sys_errno == ENOENT) return fail(Code::corrupt, "{} is missing", path.native());
  KV_TRY(file);
  auto found = slots::recover(*file);
  KV_TRY(found);
  say_what_was_found(context, *found, *slot_bytes);
  return std::make_unique<slots::FileStore>(*context.posix, context.read_only, *std::move(file), *std::move(found));
}

}  // namespace

constinit const Engine kFileEngine{
    .name = "file",
    .summary = "one seek and one write per record, into slots of one file: the honest baseline that is still safe",
    .persistent = true,
    .shared_readers = false,
    .format_version = slots::kFormatVersion,
    .options = kOptions,
    .missing = {},
    .check = check_file,
    .open = open_file,
};

}  // namespace kvingest
