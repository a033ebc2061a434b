// exact_number.hpp -- decimal numbers as text: no digit is lost between a source and the store.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvingest::fetch {

/// How a source writes its numbers.
struct NumberForm {
  std::string strip;      ///< Bytes that mean nothing: "$", ",", "%".
  char decimal = '.';     ///< What stands before the fraction.
  bool suffixes = false;  ///< K, M, B and T behind a number are powers of a thousand.
};

/// The number in the form that JSON takes ("0.5", "-12", "1.9e-7"), digits as they were; nothing where `text` is none.
[[nodiscard]] std::optional<std::string> exact_number(std::string_view text, const NumberForm& form);

/// `number`, as exact_number() gives it, times 10^power, by moving its point.
[[nodiscard]] std::optional<std::string> shifted(std::string_view number, int power);

/// `number` as a whole one; nothing where it has a fraction that is not zero, or an exponent.
[[nodiscard]] std::optional<std::string> whole_number(std::string_view number);

/// For comparisons only.
[[nodiscard]] double approximate(std::string_view number);

}  // namespace kvingest::fetch
