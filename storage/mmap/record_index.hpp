// record_index.hpp -- the newest place of each record: runs of arrival numbers in a table of runs, every other key in a
// B+tree. It is a container of VersionedIndex, which says what that is.
//
// A key is in one of the two, never in both: putting or erasing a number strikes it out of its run.
//
// Threads:  any number of readers, or one writer: the VersionedIndex has the latch.
// Lifetime: a cursor and the key it shows die with the next change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "kvingest/limits.hpp"
#include "storage/index/bplus_tree.hpp"
#include "storage/mmap/log_view.hpp"
#include "storage/mmap/run_table.hpp"

namespace kvingest::mmap_store {

class RecordIndex {
 public:
  using Place = RecordPlace;

  class Cursor {
   public:
    [[nodiscard]] bool valid() const noexcept { return at_run_ ? run_.valid : tree_.valid(); }
    [[nodiscard]] std::string_view key() const noexcept {
      return buffered_ ? std::string_view(buffer_.data(), key_.size()) : key_;
    }
    [[nodiscard]] RecordPlace place() const;
    void next();
    void previous();

   private:
    friend class RecordIndex;
    explicit Cursor(const RecordIndex& index) : index_(&index) {}
    void choose();
    void show(std::string_view key) noexcept;

    const RecordIndex* index_;
    BplusTree::Cursor tree_;
    RunTable::Position run_;
    bool forward_ = true;  // The side that is not chosen stands behind the chosen one, else before it.
    bool at_run_ = false;
    bool buffered_ = false;  // The key is in buffer_, which moves with the cursor, and key_ has its size.
    BplusTree::KeyBuffer buffer_{};
    std::string_view key_;
  };

  RecordIndex(BplusTree tree, const LogView& log) : tree_(std::move(tree)), runs_(log) {}

  [[nodiscard]] std::size_t size() const noexcept { return tree_.size() + runs_.size(); }
  [[nodiscard]] std::optional<RecordPlace> find(std::string_view key) const;
  /// find() for each of `keys`, in less time.
  void find_many(std::span<const std::string_view> keys, std::span<std::optional<RecordPlace>> places) const;
  std::optional<RecordPlace> put(std::string_view key, RecordPlace place);
  std::optional<RecordPlace> erase(std::string_view key);
  /// Takes a number out of its run alone. A checkpoint may have a number in a run and on its own: see
  /// checkpoint_writer.hpp.
  std::optional<RecordPlace> strike_out(std::string_view key);
  [[nodiscard]] Cursor seek(std::string_view key) const;
  [[nodiscard]] Cursor first() const;
  [[nodiscard]] Cursor last() const;

  /// Whether any of these numbers may have an entry, in a run or of its own. The numbers are RunTable::countable().
  [[nodiscard]] bool touches(std::uint64_t first, std::uint32_t count) const;
  /// Adds a run whose records take `bytes` from `payload` on, in the place of what other runs say of its numbers. No
  /// number has an entry in the tree.
  void insert_run(std::uint64_t first, std::uint32_t count, mmap_store::Place payload, std::size_t bytes) {
    runs_.insert(first, count, payload, static_cast<std::uint32_t>(bytes));
  }

  void clear() noexcept {
    tree_.clear();
    runs_.clear();
  }
  [[nodiscard]] const BplusTree& tree() const noexcept { return tree_; }
  [[nodiscard]] BplusTree& tree() noexcept { return tree_; }
  [[nodiscard]] const RunTable& runs() const noexcept { return runs_; }
  [[nodiscard]] RunTable& runs() noexcept { return runs_; }

 private:
  BplusTree tree_;
  RunTable runs_;
};

}  // namespace kvingest::mmap_store
