// memory_store.hpp -- a store that keeps everything in memory: `map` and `hash` are this one over two containers.
//
// Threads:  as kvingest/store.hpp says.
// Lifetime: values live until no reader can reach them any more; the versioned index says when.
// Errors:   none of the world's; memory that runs out ends the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "base/check.hpp"
#include "kvingest/store.hpp"
#include "storage/index/versioned_index.hpp"

namespace kvingest {

/// A value in memory: its length and its bytes in one allocation. Whoever holds the pointer last calls destroy().
class StoredValue {
 public:
  [[nodiscard]] static const StoredValue* create(std::string_view bytes) {
    void* memory = std::malloc(sizeof(StoredValue) + bytes.size());
    if (memory == nullptr) throw std::bad_alloc();
    auto* value = new (memory) StoredValue(static_cast<std::uint32_t>(bytes.size()));
    if (!bytes.empty()) std::memcpy(value + 1, bytes.data(), bytes.size());
    return value;
  }
  static void destroy(const StoredValue* value) noexcept { std::free(const_cast<StoredValue*>(value)); }

  [[nodiscard]] std::string_view view() const noexcept { return {reinterpret_cast<const char*>(this + 1), bytes_}; }

 private:
  explicit StoredValue(std::uint32_t bytes) noexcept : bytes_(bytes) {}
  std::uint32_t bytes_;
};

/// `Records` and `Meta` are containers of a VersionedIndex that have for_each_place(); Meta is ordered.
template <class Records, class Meta>
class MemoryStore final : public Store {
 public:
  MemoryStore() = default;
  ~MemoryStore() override {
    index_.release([](const StoredValue* value, std::uint64_t) { StoredValue::destroy(value); });
    index_.records().for_each_place(StoredValue::destroy);
    index_.meta().for_each_place(StoredValue::destroy);
  }

  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return {.ordered = OrderedContainer<Records>,
            .persistent = false,
            .weakest = Durability::memory,
            .strongest = Durability::memory};
  }

  Result<void> write(const WriteBatch& batch, Durability) override {
    auto update = index_.update(index_.published() + 1, batch.puts());
    const auto applied = for_each_operation(batch.bytes(), [&](const BatchOperation& op) -> Result<void> {
      if (op.erase) {
        update.erase(op.space, op.key);
      } else {
        update.put(op.space, op.key, StoredValue::create(op.value));
        value_bytes_ += op.value.size();
      }
      return {};
    });
    KV_ASSERT(applied);  // The batch was made in this process.
    update.publish();
    index_.release([this](const StoredValue* value, std::uint64_t) {
      value_bytes_ -= value->view().size();
      StoredValue::destroy(value);
    });
    value_bytes_seen_.store(value_bytes_, std::memory_order_relaxed);
    return {};
  }

  Result<bool> get(Space space, std::string_view key, ValueVisitor visit) const override {
    return index_.find(space, key, [&](const StoredValue* value) { visit(value->view()); });
  }

  Result<std::size_t> multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const override {
    std::size_t found = 0;
    index_.multi_find(Space::records, keys, [&](std::size_t index, const StoredValue* value) {
      visit(index, value->view());
      return ++found, true;
    });
    return found;
  }

  Result<std::size_t> scan(Space space, const Range& range, EntryVisitor visit) const override {
    if (space == Space::records && !OrderedContainer<Records>) {
      return fail(Code::unsupported, "this store keeps no order, so it cannot be scanned");
    }
    return index_.scan(space, range,
                       [&](std::string_view key, const StoredValue* value) { return visit(key, value->view()); });
  }

  Result<void> sync() override { return {}; }
  [[nodiscard]] std::uint64_t last_batch() const noexcept override { return index_.published(); }
  Result<std::uint64_t> count() const override { return index_.size(Space::records); }
  void stats(StatVisitor visit) const override {
    visit("records", index_.size(Space::records));
    visit("meta_entries", index_.size(Space::meta));
    visit("value_bytes", value_bytes_seen_.load(std::memory_order_relaxed));
    visit("older_versions", index_.older_versions());
  }
  Result<VerifyReport> verify() const override { return VerifyReport{.records = index_.size(Space::records)}; }
  Result<void> compact() override { return {}; }
  Result<void> backup(const std::filesystem::path&) const override {
    return fail(Code::unsupported, "this store is in memory only: export it, or convert it into a persistent one");
  }
  Result<void> close() override { return {}; }

 private:
  VersionedIndex<Records, Meta> index_;
  std::uint64_t value_bytes_ = 0;  // The writer's.
  std::atomic<std::uint64_t> value_bytes_seen_{0};
};

}  // namespace kvingest
