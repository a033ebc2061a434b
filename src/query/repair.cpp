#include "query/repair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json_writer.hpp"
#include "base/posix.hpp"
#include "query/opened_store.hpp"
#include "query/page_batch.hpp"
#include "storage/acked.hpp"
#include "storage/marker.hpp"
#include "storage/salvage.hpp"
#include "storage/store_lock.hpp"

namespace kvingest::query {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBatchBytes = std::size_t{1} << 20;

struct LossLine {
  Loss loss;
  fs::path aside;  ///< Where its bytes are; empty: it has none.

  [[nodiscard]] std::string text() const {
    std::string line = "lost: ";
    if (!loss.file.empty()) line += loss.file.native();
    if (loss.bytes > 0) line += fmt::format(", {} bytes at offset {}", loss.bytes, loss.offset);
    line += (loss.file.empty() ? "" : ": ") + loss.what;
    return aside.empty() ? line : line + fmt::format(" (set aside in {})", aside.native());
  }
};

/// Writes what holds into the new store, and sets aside what does not.
class Rebuild final : public Salvager {
 public:
  Rebuild(Store& target, fs::path aside) : target_(target), aside_(std::move(aside)) {}

  Result<void> take(const BatchOperation& operation) override {
    if (operation.erase)
      batch_.erase(operation.space, operation.key);
    else
      batch_.add(operation.space, operation.key, operation.value);
    return batch_.bytes() < kBatchBytes ? Result<void>() : flush();
  }

  Result<void> lose(const Loss& loss) override {
    LossLine line{loss, {}};
    if (loss.bytes > 0) {
      line.aside = aside_ / fmt::format("{}-{}.bin", loss.file.filename().native(), loss.offset);
      KV_TRY(copy_out(loss, line.aside));
    }
    lines_.push_back(std::move(line));
    return {};
  }

  Result<void> flush() {
    WriteBatch& batch = batch_.finish();
    if (batch.empty()) return {};
    KV_TRY(target_.write(batch, Durability::kernel));
    batch.clear();
    return {};
  }

  [[nodiscard]] const std::vector<LossLine>& lines() const noexcept { return lines_; }

 private:
  static Result<void> copy_out(const Loss& loss, const fs::path& to) {
    auto from = File::open(Posix::real(), loss.file, O_RDONLY);
    KV_TRY(from);
    const auto size = from->size();
    KV_TRY(size);
    auto copy = File::open(Posix::real(), to, O_WRONLY | O_CREAT | O_TRUNC);
    KV_TRY(copy);
    std::array<char, 64 << 10> buffer;
    const std::uint64_t end = std::min(loss.offset + loss.bytes, *size);
    for (std::uint64_t at = loss.offset; at < end;) {
      const std::uint64_t step = std::min<std::uint64_t>(end - at, buffer.size());
      KV_TRY(from->read_at(buffer.data(), step, at));
      KV_TRY(copy->write_at({buffer.data(), step}, at - loss.offset));
      at += step;
    }
    return copy->sync_all();
  }

  Store& target_;
  const fs::path aside_;
  PageBatch batch_;
  std::vector<LossLine> lines_;
};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

Result<void> check_target(const RepairPlan& plan) {
  std::error_code error;
  for (const fs::path& path : {plan.target, lost_dir(plan.target)}) {
    if (is_there(path) && !fs::is_empty(path, error))
      return fail(Code::invalid_argument, "{} is there already; name a new directory", path.native());
  }
  const fs::path inside = fs::weakly_canonical(plan.target, error).lexically_relative(fs::canonical(plan.dir, error));
  if (error) return fail(error.value(), "resolve {}", plan.dir.native());
  if (inside.empty() || *inside.begin() == "..") return {};
  return fail(Code::invalid_argument, "{} is inside the damaged store's own directory; name another",
              plan.target.native());
}

/// Nothing when the store opens and verifies; else why not. Fails with: what is no damage.
Result<std::optional<std::string>> damage_of(const fs::path& dir, const std::function<void(std::string_view)>& notice,
                                             std::uint64_t& records) {
  const auto told = [&](const Error& error) -> Result<std::optional<std::string>> {
    if (error.code != Code::corrupt) return tl::unexpected<Error>(error);
    return std::optional(error.text);
  };
  const auto opened = open_for_reading(dir, notice);
  if (!opened) return told(opened.error());
  const auto verified = opened->store->verify();
  if (!verified) return told(verified.error());
  records = verified->records;
  return std::optional<std::string>();
}

/// The marker or, where it is lost, what the files tell: then the labels are gone.
Result<Marker> marker_of(const fs::path& dir, std::vector<Loss>& losses) {
  auto marker = find_marker(Posix::real(), dir);
  if (marker && *marker) return **marker;
  if (!marker && marker.error().code != Code::corrupt) return tl::unexpected<Error>(std::move(marker).error());
  const auto engine = engine_of_files(dir);
  if (!engine) return fail(Code::invalid_argument, "no store in {}", dir.native());
  std::error_code ignored;
  const bool there = !marker;
  losses.push_back({dir / kMarkerName, 0, there ? fs::file_size(dir / kMarkerName, ignored) : 0,
                    fmt::format("the marker is {}: by its files this is a store {}; how keys are made is not known any "
                                "more, and the next run of kvingest says it anew",
                                there ? "damaged" : "missing", *engine)});
  return Marker{.engine = std::string(*engine), .created = {}, .labels = {}};
}

/// What had been answered, held against what is left.
Result<void> compare_acknowledged(const fs::path& dir, std::optional<std::uint64_t> last_batch, Rebuild& rebuild) {
  const auto acked = read_acked(Posix::real(), dir);
  if (!acked && acked.error().code != Code::corrupt) return tl::unexpected<Error>(acked.error());
  if (!acked) return rebuild.lose({dir / kAckedName, 0, 0, "damaged: what had been acknowledged is not known"});
  if (!*acked || !last_batch) return {};
  const std::uint64_t wanted = (*acked)->on_disk.batch;
  if (*last_batch >= wanted) return {};
  return rebuild.lose({dir, 0, 0,
                       fmt::format("batches {} to {} are missing at the end, which had been acknowledged as on disk",
                                   *last_batch + 1, wanted)});
}

/// The lines, for whoever finds the directory later.
Result<void> write_losses(const fs::path& aside, const std::vector<LossLine>& lines) {
  std::string text;
  for (const LossLine& line : lines) text += line.text() + "\n";
  return replace_file(Posix::real(), aside / "LOSSES", text);
}

struct Repaired {
  std::vector<LossLine> lines;
  std::uint64_t records = 0;
};

Result<Repaired> rebuild(const RepairPlan& plan) {
  const auto lock = StoreLock::for_reading(Posix::real(), plan.dir);
  KV_TRY(lock);
  std::vector<Loss> losses;
  const auto marker = marker_of(plan.dir, losses);
  KV_TRY(marker);
  const fs::path aside = lost_dir(plan.target);
  const fs::path scratch = aside / "scratch";
  std::error_code error;
  fs::create_directories(scratch, error);
  if (error) return fail(error.value(), "create {}", scratch.native());
  const auto spec = parse_store_spec(marker->engine);
  KV_TRY(spec);
  auto target = open_store(*spec, {.dir = plan.target, .labels = marker->labels});
  KV_TRY(target);
  Rebuild building(**target, aside);
  for (const Loss& loss : losses) KV_TRY(building.lose(loss));
  const auto last_batch = salvage(marker->engine, {Posix::real(), plan.dir, scratch}, building);
  KV_TRY(last_batch);
  KV_TRY(compare_acknowledged(plan.dir, *last_batch, building));
  KV_TRY(building.flush());
  KV_TRY((*target)->sync());
  KV_TRY((*target)->close());
  target->reset();
  fs::remove_all(scratch, error);
  KV_TRY(write_losses(aside, building.lines()));
  return Repaired{building.lines(), 0};
}

void print_report(const RepairPlan& plan, const std::string& damage, const Repaired& repaired, RowForm form,
                  Output& out) {
  if (form != RowForm::json) {
    out.text() += fmt::format("damaged: {}\n", damage);
    for (const LossLine& line : repaired.lines) out.text() += line.text() + "\n";
    out.text() += fmt::format(
        "{}: {} records, verified; {} places are lost, listed in {}; {} is as it was\n"
        "kvq audit --dir {} says how many arrivals are missing\n",
        plan.target.native(), repaired.records, repaired.lines.size(), (lost_dir(plan.target) / "LOSSES").native(),
        plan.dir.native(), plan.target.native());
    return;
  }
  JsonWriter json;
  json.begin_object().field("sound", false).field("damage", damage).field("records", repaired.records);
  json.field("target", plan.target.native()).field("lost", lost_dir(plan.target).native()).key("losses").begin_array();
  for (const LossLine& line : repaired.lines) {
    json.begin_object().field("file", line.loss.file.native()).field("offset", line.loss.offset);
    json.field("bytes", line.loss.bytes).field("what", line.loss.what).field("aside", line.aside.native());
    json.end_object();
  }
  out.text() += json.end_array().end_object().text() + "\n";
}

void print_sound(const fs::path& dir, std::uint64_t records, RowForm form, Output& out) {
  if (form == RowForm::json) {
    JsonWriter json;
    out.text() += json.begin_object().field("sound", true).field("records", records).end_object().text() + "\n";
  } else {
    out.text() += fmt::format("sound: {} holds {} records, and there is nothing to repair\n", dir.native(), records);
  }
}

}  // namespace

fs::path lost_dir(const fs::path& target) {
  return (target.has_filename() ? target : target.parent_path()).native() + ".lost";
}

Result<void> print_repair(const RepairPlan& plan, const std::function<void(std::string_view)>& notice, RowForm form,
                          Output& out) {
  std::uint64_t records = 0;
  auto damage = damage_of(plan.dir, notice, records);
  // Without its marker a directory holds no store to anybody else.
  if (!damage && damage.error().code == Code::invalid_argument && engine_of_files(plan.dir))
    damage = std::optional<std::string>(damage.error().text);
  KV_TRY(damage);
  if (!*damage) {
    print_sound(plan.dir, records, form, out);
    return out.flush();
  }
  KV_TRY(check_target(plan));
  auto repaired = rebuild(plan);
  if (!repaired) {
    // Nothing was there before, and half a store helps nobody.
    std::error_code ignored;
    for (const fs::path& path : {plan.target, lost_dir(plan.target)}) fs::remove_all(path, ignored);
    return fail(std::move(repaired).error(), "repair {}", plan.dir.native());
  }
  const auto opened = open_for_reading(plan.target, notice);
  if (!opened) return fail(opened.error(), "open the repaired store");
  const auto verified = opened->store->verify();
  if (!verified) return fail(verified.error(), "verify the repaired store");
  repaired->records = verified->records;
  print_report(plan, **damage, *repaired, form, out);
  return out.flush();
}

}  // namespace kvingest::query
