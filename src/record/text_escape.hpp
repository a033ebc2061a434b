// text_escape.hpp -- bytes as one line of text and back: what kvq prints and takes as arguments.
//
// Printable ASCII and well-formed UTF-8 stay as they are; backslash, tab, LF and CR become \\ \t \n \r; every other
// byte, control characters beyond ASCII (U+0080 to U+009F) included, becomes \xNN. So nothing printed can move a
// cursor or end a row, and every string of bytes comes back as it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest {

void append_escaped(std::string& to, std::string_view bytes);
[[nodiscard]] std::string escaped(std::string_view bytes);

/// Undoes the escapes; other bytes stand for themselves. Fails with: invalid_argument (an unknown or cut escape).
[[nodiscard]] Result<std::string> unescaped(std::string_view text);

/// The arrival number of a key of a {seq} store: 8 bytes, big-endian, below 2^56. Other keys there were written by
/// name, and have none.
[[nodiscard]] std::optional<std::uint64_t> seq_of_key(std::string_view key) noexcept;
[[nodiscard]] std::string key_of_seq(std::uint64_t seq);

/// A key as kvq shows it. Where `seq_keys`, arrival numbers are decimal; a named key that looks like one has its first
/// byte escaped.
void append_key_text(std::string& to, std::string_view key, bool seq_keys);
/// Undoes it. Fails with: invalid_argument (escapes, a number of 2^56 or more).
[[nodiscard]] Result<std::string> key_from_text(std::string_view text, bool seq_keys);

}  // namespace kvingest
