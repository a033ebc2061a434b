// scripted_store.hpp -- a store in memory whose next answers a test decides, and which can be held inside a write.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kvingest/store.hpp"

namespace kvingest::test {

class ScriptedStore final : public Store {
 public:
  explicit ScriptedStore(Capabilities capabilities = {}) : capabilities_(capabilities) {}

  /// The next writes, or those behind the first `after`, fail with these codes, in order; then they succeed.
  void fail_next(std::vector<Code> codes, int after = 0) {
    const std::lock_guard lock(mutex_);
    codes_.assign(codes.begin(), codes.end());
    passes_ = after;
  }
  void fail_syncs() {
    const std::lock_guard lock(mutex_);
    syncs_fail_ = true;
  }
  /// Writes wait until let_go().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    wakes_.notify_all();
  }
  [[nodiscard]] std::vector<Durability> levels() const {
    const std::lock_guard lock(mutex_);
    return levels_;
  }
  [[nodiscard]] int attempts() const {
    const std::lock_guard lock(mutex_);
    return attempts_;
  }
  [[nodiscard]] int syncs() const {
    const std::lock_guard lock(mutex_);
    return syncs_;
  }
  [[nodiscard]] std::map<std::string, std::string, std::less<>> entries(Space space) const {
    const std::lock_guard lock(mutex_);
    return space == Space::records ? records_ : meta_;
  }

  [[nodiscard]] Capabilities capabilities() const noexcept override { return capabilities_; }

  Result<void> write(const WriteBatch& batch, Durability durability) override {
    std::unique_lock lock(mutex_);
    ++attempts_;
    wakes_.wait(lock, [this] { return !held_; });
    if (passes_ > 0) {
      --passes_;
    } else if (!codes_.empty()) {
      const Code code = codes_.front();
      codes_.pop_front();
      return fail(code, "scripted");
    }
    levels_.push_back(durability);
    return for_each_operation(batch.bytes(), [this](const BatchOperation& op) -> Result<void> {
      auto& into = op.space == Space::records ? records_ : meta_;
      if (op.erase) {
        into.erase(std::string(op.key));
      } else {
        into[std::string(op.key)] = op.value;
      }
      return {};
    });
  }

  Result<bool> get(Space space, std::string_view key, ValueVisitor visit) const override {
    const std::lock_guard lock(mutex_);
    const auto& from = space == Space::records ? records_ : meta_;
    const auto at = from.find(key);
    if (at == from.end()) return false;
    visit(at->second);
    return true;
  }
  Result<std::size_t> multi_get(std::span<const std::string_view>, IndexedValueVisitor) const override { return 0; }
  Result<std::size_t> scan(Space space, const Range& range, EntryVisitor visit) const override {
    const std::lock_guard lock(mutex_);
    const auto& from = space == Space::records ? records_ : meta_;
    std::size_t seen = 0;
    for (auto at = range.first ? from.lower_bound(*range.first) : from.begin(); at != from.end(); ++at) {
      if (range.last && at->first >= *range.last) break;
      ++seen;
      if (!visit(at->first, at->second)) break;
    }
    return seen;
  }
  Result<void> sync() override {
    const std::lock_guard lock(mutex_);
    ++syncs_;
    if (syncs_fail_) return fail(Code::io_error, "scripted sync");
    return {};
  }
  [[nodiscard]] std::uint64_t last_batch() const noexcept override { return 0; }
  Result<std::uint64_t> count() const override { return entries(Space::records).size(); }
  void stats(StatVisitor) const override {}
  Result<VerifyReport> verify() const override { return VerifyReport{}; }
  Result<void> compact() override { return {}; }
  Result<void> backup(const std::filesystem::path&) const override { return {}; }
  Result<void> close() override { return {}; }

 private:
  const Capabilities capabilities_;
  mutable std::mutex mutex_;
  std::condition_variable wakes_;
  std::map<std::string, std::string, std::less<>> records_;
  std::map<std::string, std::string, std::less<>> meta_;
  std::deque<Code> codes_;
  std::vector<Durability> levels_;
  int attempts_ = 0;
  int passes_ = 0;
  int syncs_ = 0;
  bool syncs_fail_ = false;
  bool held_ = false;
};

}  // namespace kvingest::test
