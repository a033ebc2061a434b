// page_batch.hpp -- entries of one store as a batch for another. Records under consecutive arrival numbers become runs,
// which our own store keeps without a key for each.
//
// Threads: a value; one thread at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "kvingest/write_batch.hpp"
#include "record/text_escape.hpp"

namespace kvingest::query {

class PageBatch {
 public:
  void add(Space space, std::string_view key, std::string_view value) {
    if (space == Space::meta) return batch_.put_meta(key, value);
    const auto seq = seq_of_key(key);
    if (!seq) {
      end_run();
      return batch_.put(key, value);
    }
    if (run_.puts() == 0 || *seq != run_first_ + run_.puts()) {
      end_run();
      run_first_ = *seq;
    }
    run_.put_next(value);
  }
  void erase(Space space, std::string_view key) {
    if (space == Space::meta) return batch_.erase_meta(key);
    end_run();
    batch_.erase(key);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return batch_.bytes().size() + run_.bytes().size(); }
  /// The batch with all that was added; empty it after use.
  WriteBatch& finish() {
    end_run();
    return batch_;
  }

 private:
  void end_run() {
    if (run_.puts() == 0) return;
    run_.number(run_first_);
    batch_.append(run_);
    run_.clear();
  }

  WriteBatch batch_;
  WriteBatch run_;
  std::uint64_t run_first_ = 0;
};

}  // namespace kvingest::query
