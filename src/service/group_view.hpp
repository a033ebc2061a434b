// group_view.hpp -- the records as they will be when the group that is being built is in the store.
//
// Only conditions look through it, so the batch is read when the first of them asks, and from there on as it grows.
//
// Threads: one (the committer's lock). Lifetime: store and batch outlive it; nothing else is written to the store
//          between the first look and the group's own write.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "kvingest/ingest.hpp"
#include "kvingest/store.hpp"
#include "kvingest/write_batch.hpp"

namespace kvingest {

class GroupView final : public RecordView {
 public:
  GroupView(const Store& store, const WriteBatch& batch) : store_(store), batch_(batch) {}

  Result<bool> get(std::string_view key, Store::ValueVisitor visit) const override;
  Result<void> keys(FunctionRef<bool(std::string_view key)> visit) const override;
  /// The batch has been emptied, or exchanged for another.
  void forget();

 private:
  /// Where the batch has a value: its bytes may move, its offsets stay.
  struct Place {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    bool erased = false;
  };

  void read_batch() const;
  void note(std::string key, std::string_view value, bool erased) const;

  const Store& store_;
  const WriteBatch& batch_;
  mutable std::size_t read_ = 0;  // Bytes of the batch that are in changed_.
  mutable std::unordered_map<std::string, Place> changed_;
};

}  // namespace kvingest
