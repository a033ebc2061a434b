// model.hpp -- what a store must hold, kept by the tests in plain maps: no code of any engine.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvingest/store.hpp"

namespace kvingest::test {

using Rows = std::vector<std::pair<std::string, std::string>>;

/// The 8-byte key of a record that is keyed by its arrival number.
[[nodiscard]] std::string seq_key(std::uint64_t number);

/// One change, before it is encoded.
struct Operation {
  enum class Kind : std::uint8_t { put, next, erase, put_meta, erase_meta };
  Kind kind = Kind::put;
  std::string key = {};  ///< Empty for `next`, which gets a number.
  std::string value = {};
};

/// The batch of these operations, its puts numbered from `first`.
[[nodiscard]] WriteBatch to_batch(std::span<const Operation> operations, std::uint64_t first = 1);

class Model {
 public:
  /// Applies the operations, numbering puts from `first`.
  void apply(std::span<const Operation> operations, std::uint64_t first = 1);

  [[nodiscard]] const std::map<std::string, std::string>& space(Space which) const noexcept {
    return which == Space::records ? records_ : meta_;
  }
  /// What Store::scan() must pass for `range`.
  [[nodiscard]] Rows scan(Space which, const Range& range) const;

  friend bool operator==(const Model&, const Model&) = default;

 private:
  std::map<std::string, std::string> records_;
  std::map<std::string, std::string> meta_;
};

/// The same operations for the same seed, on every machine: keys that meet again, of awkward lengths and bytes.
class OperationSource {
 public:
  explicit OperationSource(std::uint64_t seed) : random_(seed) {}

  /// A batch of up to `operations_max` operations with values of up to `value_bytes_max`.
  [[nodiscard]] std::vector<Operation> batch(std::size_t operations_max, std::size_t value_bytes_max);
  /// A key like those of the batches; half of them are likely to exist.
  [[nodiscard]] std::string key();
  /// At least 0, below `bound`.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

 private:
  std::string bytes(std::size_t count);

  std::mt19937_64 random_;
};

}  // namespace kvingest::test
