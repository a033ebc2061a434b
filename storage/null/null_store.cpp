// null_store.cpp -- accepts and forgets: the floor of every benchmark, and the template for a new engine.
//
// It walks nothing and keeps a count. Copy this folder to begin an engine: replace the bodies, keep the promises of
// kvingest/store.hpp, add the row to storage/engine_rows.hpp and storage/registry.cpp, and run the suite that tests
// every engine by name.
#include "storage/engine_rows.hpp"

namespace kvingest {
namespace {

class NullStore final : public Store {
 public:
  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return {.persistent = false, .weakest = Durability::memory, .strongest = Durability::memory};
  }

  Result<void> write(const WriteBatch& batch, Durability) override {
    records_ += batch.puts();
    ++last_batch_;
    return {};
  }
  Result<bool> get(Space, std::string_view, ValueVisitor) const override { return false; }
  Result<std::size_t> multi_get(std::span<const std::string_view>, IndexedValueVisitor) const override { return 0; }
  Result<std::size_t> scan(Space, const Range&, EntryVisitor) const override { return 0; }
  Result<void> sync() override { return {}; }
  [[nodiscard]] std::uint64_t last_batch() const noexcept override { return last_batch_; }
  Result<std::uint64_t> count() const override { return 0; }
  void stats(StatVisitor visit) const override { visit("forgotten_records", records_); }
  Result<VerifyReport> verify() const override { return VerifyReport{}; }
  Result<void> compact() override { return {}; }
  Result<void> backup(const std::filesystem::path&) const override {
    return fail(Code::unsupported, "store null keeps nothing to back up");
  }
  Result<void> close() override { return {}; }

 private:
  std::uint64_t records_ = 0;
  std::uint64_t last_batch_ = 0;
};

Result<std::unique_ptr<Store>> open_null(const EngineContext&) {
  return std::make_unique<NullStore>();
}

}  // namespace

constinit const Engine kNullEngine{
    .name = "null",
    .summary = "accepts and forgets: the floor of every benchmark",
    .persistent = false,
    .shared_readers = false,
    .format_version = 0,
    .options = {},
    .missing = {},
    .open = open_null,
};

}  // namespace kvingest
