// feed_protocol.hpp -- the control lines of the feed protocol. net/PROTOCOL.md is the full text.
//
// A line that starts with "!kv " is a control line: words, each a bare token or name=value, of printable ASCII, values
// with spaces in double quotes with \" and \\, at most 4 KiB. A data line that looks like one is sent with one more
// '!'.
//
// Threads: functions without state. Lifetime: parsed views point into the line, but for values that had escapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest::net {

inline constexpr std::size_t kControlLineBytesMax = 4096;

enum class LineKind : std::uint8_t {
  data,     ///< As it stands.
  escaped,  ///< Data, without its first '!'.
  control,  ///< "!kv ...".
};

/// What a line that begins with '!' is; every other line is data.
[[nodiscard]] LineKind classify_line(std::string_view line) noexcept;

struct ControlLine {
  struct Word {
    std::string name;   ///< Empty for a bare token.
    std::string value;  ///< The token, or what stands behind the '='.
  };
  std::string verb;  ///< "sync".
  std::vector<Word> words;

  /// The value of `name=...`, if the line has it.
  [[nodiscard]] std::optional<std::string_view> value_of(std::string_view name) const;
};

/// Parses a control line; a CR at its end is dropped. Fails with: invalid_argument, saying what is wrong with it.
[[nodiscard]] Result<ControlLine> parse_control(std::string_view line);

/// Builds an answer: ControlAnswer("synced").add("line", 7).line() is "!kv synced line=7\n".
class ControlAnswer {
 public:
  explicit ControlAnswer(std::string_view verb) : text_("!kv ") { text_ += verb; }

  ControlAnswer& add(std::string_view name, std::uint64_t value) { return add(name, std::to_string(value)); }
  /// Quotes and escapes where the value needs it; bytes outside printable ASCII become '?'.
  ControlAnswer& add(std::string_view name, std::string_view value);
  ControlAnswer& add(std::string_view token);
  [[nodiscard]] std::string line() const { return text_ + '\n'; }

 private:
  std::string text_;
};

}  // namespace kvingest::net
