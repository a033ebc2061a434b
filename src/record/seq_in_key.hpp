// seq_in_key.hpp -- the arrival number in a key that a template made.
//
// Threads: immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest {

class SeqInKey {
 public:
  /// Of a store whose marker says `key_template`. Fails with: invalid_argument (it is none).
  [[nodiscard]] static Result<SeqInKey> of(std::string_view key_template);

  /// Keys of this store hold a number, at a place that does not depend on other fields.
  [[nodiscard]] bool is_known() const noexcept { return place_ != Place::unknown; }
  /// Keys begin with it: in key order, numbers rise.
  [[nodiscard]] bool leads() const noexcept { return leads_; }
  /// Where it leads: the first key that may hold `seq` or a later number, and the first behind all numbered ones.
  [[nodiscard]] std::string first_key(std::uint64_t seq) const;
  [[nodiscard]] std::string end_key() const;
  /// The number in `key`; nothing where the template cannot have made it.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view key) const noexcept;

 private:
  enum class Place { unknown, whole_key, from_front, from_back };

  Place place_ = Place::unknown;
  std::size_t distance_ = 0;  // Bytes before or behind the digits.
  bool leads_ = false;
  std::string prefix_;  // Before the number, where it leads.
};

}  // namespace kvingest
