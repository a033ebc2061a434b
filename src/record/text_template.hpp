// text_template.hpp -- the template that makes a key or a value from the fields of a message: "{symbol}/{date}".
//
//   literal text, {{ and }}   themselves, { and }
//   {name}                    the field of that name
//   {name:0W}                 an unsigned decimal of at most W digits, padded with zeros so that text order is number
//                             order
//   {/quote/symbol}           a JSON pointer (RFC 6901: ~1 is /, ~0 is ~); {/name} names a column, too
//   {"a:b}"}                  a name in double quotes, where it holds : or }; a quote in it is doubled
//   {seq} {time} {source}     built in, and win over fields of the same name: {"seq"} and {/seq} are the field
//
// Threads: immutable once compiled; any thread.
// Errors:  a bad template is invalid_argument; the text quotes the template and names the byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest {

/// Where a field is found: one name, or the steps of a JSON pointer.
struct FieldPath {
  std::vector<std::string> steps;  ///< Never empty.

  bool operator==(const FieldPath&) const = default;
  /// As a template would write it: `name` or `/quote/symbol`.
  [[nodiscard]] std::string text() const;
};

class TextTemplate {
 public:
  enum class Kind : std::uint8_t { literal, field, seq, time, source };
  struct Part {
    Kind kind = Kind::literal;
    std::string text;         ///< Of a literal.
    std::size_t field = 0;    ///< Of a field: its index in the table given to compile().
    std::size_t width = 0;    ///< W of {name:0W}; 0 without one.
    std::size_t at_byte = 0;  ///< Where it begins in the template, for messages.
  };

  /// The empty template: it makes empty text.
  TextTemplate() = default;

  /// Compiles `text`. Fields it names are added to `fields`, which several templates may share, unless they are there.
  /// `what` names the template in errors: "key". Fails with: invalid_argument.
  static Result<TextTemplate> compile(std::string_view what, std::string_view text, std::vector<FieldPath>& fields);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }
  /// Exactly "{seq}".
  [[nodiscard]] bool is_seq_alone() const noexcept { return parts_.size() == 1 && parts_[0].kind == Kind::seq; }
  [[nodiscard]] bool contains(Kind kind) const noexcept;

 private:
  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace kvingest
