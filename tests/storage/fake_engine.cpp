#include "tests/storage/fake_engine.hpp"

#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace kvingest::test {

FakePlan fake_plan;

namespace {

constexpr EngineOption kOptions[] = {{"size", "1", "how large"}, {"speed", "2", "how fast"}};

class FakeStore final : public Store {
 public:
  explicit FakeStore(EngineContext context) : context_(std::move(context)) {
    const std::string kept = file_text(context_.dir / "batches");
    last_batch_ = fake_plan.last_batch.value_or(kept.empty() ? 0 : std::stoull(kept));
  }
  ~FakeStore() override = default;

  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
  Result<void> write(const WriteBatch& batch, Durability) override {
    if (fake_plan.write) return tl::unexpected<Error>(*fake_plan.write);
    KV_TRY(for_each_operation(batch.bytes(), [&](const BatchOperation& op) -> Result<void> {
      auto& entries = op.space == Space::meta ? meta_ : records_;
      if (op.erase) {
        entries.erase(std::string(op.key));
      } else {
        entries[std::string(op.key)] = op.value;
      }
      return {};
    }));
    write_text(context_.dir / "batches", std::to_string(++last_batch_));
    return {};
  }
  Result<bool> get(Space space, std::string_view key, ValueVisitor visit) const override {
    if (fake_plan.get) return tl::unexpected<Error>(*fake_plan.get);
    const auto& entries = space == Space::meta ? meta_ : records_;
    const auto at = entries.find(key);
    if (at == entries.end()) return false;
    visit(at->second);
    return true;
  }
  Result<std::size_t> multi_get(std::span<const std::string_view>, IndexedValueVisitor) const override { return 0; }
  Result<std::size_t> scan(Space, const Range& range, EntryVisitor) const override {
    fake_plan.seen_range = range;
    fake_plan.seen_first = range.first.value_or("");
    fake_plan.seen_last = range.last.value_or("");
    return 0;
  }
  Result<void> sync() override {
    if (fake_plan.sync) return tl::unexpected<Error>(*fake_plan.sync);
    return {};
  }
  [[nodiscard]] std::uint64_t last_batch() const noexcept override { return last_batch_; }
  Result<std::uint64_t> count() const override { return records_.size(); }
  void stats(StatVisitor visit) const override { visit("records", records_.size()); }
  Result<VerifyReport> verify() const override { return VerifyReport{}; }
  Result<void> compact() override { return {}; }
  Result<void> backup(const std::filesystem::path& to) const override {
    std::filesystem::create_directory(to);
    write_text(to / "batches", std::to_string(last_batch_));
    if (fake_plan.backup) return tl::unexpected<Error>(*fake_plan.backup);
    return {};
  }
  Result<void> close() override { return ++fake_plan.closes, Result<void>(); }

 private:
  EngineContext context_;
  std::map<std::string, std::string, std::less<>> records_;
  std::map<std::string, std::string, std::less<>> meta_;
  std::uint64_t last_batch_ = 0;
};

Result<std::unique_ptr<Store>> open_fake(const EngineContext& context) {
  ++fake_plan.opens;
  fake_plan.seen = context;
  if (fake_plan.open) return tl::unexpected<Error>(*fake_plan.open);
  return std::make_unique<FakeStore>(context);
}

constexpr Engine fake_row(std::string_view name, std::uint32_t format, bool shared_readers) {
  return {.name = name,
          .summary = "for tests",
          .persistent = true,
          .shared_readers = shared_readers,
          .format_version = format,
          .options = kOptions,
          .missing = {},
          .open = open_fake};
}

}  // namespace

const Engine kFakeEngine = fake_row("fake", 3, false);
const Engine kNewerFakeEngine = fake_row("fake", 4, false);
const Engine kSharedFakeEngine = fake_row("fake", 3, true);
const Engine kOtherFakeEngine = fake_row("other", 3, false);

}  // namespace kvingest::test
