// checked_store.hpp -- stands in front of every engine and keeps the promises that are the same for all: limits, use
// after close, and the latch after a failure. An engine never sees a key, value, bound or batch beyond the limits.
//
// Threads:  as kvingest/store.hpp says; a second writer at the same time is a bug and asserted against.
// Lifetime: owns the engine and, for persistent ones, the directory with its lock; both are given back by close().
// Errors:   once a call has answered `failed`, or write() or sync() io_error, every later one answers `failed` with
//           that first reason. `corrupt` is of one place: reads of others go on.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "kvingest/store.hpp"
#include "storage/acked.hpp"
#include "storage/reserve.hpp"
#include "storage/store_directory.hpp"

namespace kvingest {

class CheckedStore final : public Store {
 public:
  /// `directory` is absent for engines that keep nothing on disk, `acked` also for readers.
  CheckedStore(std::unique_ptr<Store> engine, std::optional<StoreDirectory> directory, std::optional<AckedFile> acked,
               bool read_only);
  ~CheckedStore() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override { return capabilities_; }
  Result<void> write(const WriteBatch& batch, Durability durability) override;
  Result<bool> get(Space space, std::string_view key, ValueVisitor visit) const override;
  Result<std::size_t> multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const override;
  Result<std::size_t> scan(Space space, const Range& range, EntryVisitor visit) const override;
  Result<void> sync() override;
  [[nodiscard]] std::uint64_t last_batch() const noexcept override;
  Result<std::uint64_t> count() const override;
  void stats(StatVisitor visit) const override;
  Result<VerifyReport> verify() const override;
  Result<void> compact() override;
  Result<void> backup(const std::filesystem::path& to) const override;
  Result<void> close() override;

 private:
  enum class State : std::uint8_t { open, failed, closed };

  [[nodiscard]] bool is_open() const noexcept { return state_.load(std::memory_order_acquire) == State::open; }
  // Why no call is taken.
  [[nodiscard]] tl::unexpected<Error> refusal() const;
  [[nodiscard]] static tl::unexpected<Error> read_only_refusal();
  void latch(const Error& reason) const;
  // Passes an engine's answer on; a `failed` one latches.
  template <class T>
  Result<T> noted(Result<T> answer) const;
  // The same for calls that change the store: there io_error latches, too.
  Result<void> noted_change(Result<void> answer) const;
  Result<void> write_within_space(const WriteBatch& batch, Durability durability);
  // Before an answer goes out: notes in ACKED what it promises.
  Result<void> acknowledge(bool on_disk);
  [[nodiscard]] BatchMark last_mark() const;

  std::optional<StoreDirectory> directory_;  // Outlives the engine: its lock guards the engine's files.
  std::unique_ptr<Store> engine_;
  std::optional<AckedFile> acked_;
  std::optional<Reserve> reserve_;  // Of a persistent store that may be written.
  bool full_ = false;               // The last write found no space.
  const Capabilities capabilities_;
  const bool read_only_;
  mutable std::atomic<State> state_{State::open};
  std::atomic<bool> writing_{false};
  mutable std::mutex reason_mutex_;
  mutable std::string reason_;  // Guarded by reason_mutex_: why the store failed.
};

}  // namespace kvingest
