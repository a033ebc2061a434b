// target.hpp -- where records and the progress of jobs go: into a store, or into a running service with a store of
// notes beside it.
//
// Threads:  one.
// Errors:   after a failed commit nothing of it may be taken for done; the windows in it are fetched again by a later
//           run, and their keys make one of what was written twice.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/load/decode.hpp"
#include "kvingest/result.hpp"
#include "kvingest/store.hpp"

namespace kvingest::fetch {

using Notes = std::vector<std::pair<std::string, std::string>>;

/// What became of the records of a commit.
struct Written {
  std::uint64_t inserted = 0;
  std::uint64_t changed = 0;
  std::uint64_t same = 0;  ///< Were there as they are, and were not written.
  Written& operator+=(const Written& other) noexcept {
    inserted += other.inserted;
    changed += other.changed;
    same += other.same;
    return *this;
  }
};

class Target {
 public:
  virtual ~Target() = default;

  /// What stands under `key`; nothing where nothing does, or where it cannot be known.
  virtual Result<std::optional<std::string>> find(std::string_view key) = 0;
  /// Whether find() knows.
  [[nodiscard]] virtual bool knows_records() const noexcept = 0;
  /// Makes `records` durable, and then, or in the same step, `notes`.
  virtual Result<void> commit(std::span<const Record* const> records, const Notes& notes) = 0;
  virtual Result<std::optional<std::string>> note(std::string_view name) = 0;
};

/// Into a store: records and notes in one batch, on disk when commit() returns. Records count as `@fetch` in the
/// store's ledger.
class StoreTarget final : public Target {
 public:
  /// `store` outlives it.
  explicit StoreTarget(Store& store) : store_(&store) {}

  Result<std::optional<std::string>> find(std::string_view key) override;
  [[nodiscard]] bool knows_records() const noexcept override { return true; }
  Result<void> commit(std::span<const Record* const> records, const Notes& notes) override;
  Result<std::optional<std::string>> note(std::string_view name) override;

 private:
  Store* store_;
  WriteBatch batch_;
};

}  // namespace kvingest::fetch
