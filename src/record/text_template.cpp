#include "record/text_template.hpp"

#include <algorithm>
#include <charconv>

#include "kvingest/limits.hpp"

namespace kvingest {
namespace {

struct Placeholder {
  std::string name;
  bool quoted = false;
  std::size_t width = 0;
};

/// Walks a template from left to right; every failure names it and the place.
class Compiler {
 public:
  Compiler(std::string_view what, std::string_view text, std::vector<FieldPath>& fields)
      : what_(what), text_(text), fields_(fields) {}

  Result<std::vector<TextTemplate::Part>> parts() {
    while (at_ < text_.size()) {
      if (text_[at_] == '{' && peek(1) != '{') {
        KV_TRY(placeholder());
      } else if (text_[at_] == '}' && peek(1) != '}') {
        return failure(at_, "a single '}'; write '}}' for the character itself");
      } else {
        literal();
      }
    }
    return std::move(parts_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  [[nodiscard]] tl::unexpected<Error> failure(std::size_t at, std::string_view problem) const {
    return fail(Code::invalid_argument, "{} template '{}': at byte {}: {}", what_, text_, at + 1, problem);
  }

  void literal() {
    if (parts_.empty() || parts_.back().kind != TextTemplate::Kind::literal) parts_.push_back({.at_byte = at_});
    parts_.back().text += text_[at_];
    at_ += text_[at_] == '{' || text_[at_] == '}' ? 2 : 1;  // A doubled brace.
  }

  Result<void> placeholder() {
    const std::size_t begin = at_++;
    Placeholder found;
    found.quoted = peek(0) == '"';
    if (found.quoted) {
      KV_TRY(quoted_name(found.name));
    } else {
      while (at_ < text_.size() && text_[at_] != '}' && text_[at_] != ':') found.name += text_[at_++];
    }
    if (peek(0) == ':') KV_TRY(width(found.width));
    if (at_ == text_.size()) return failure(begin, "'{' is never closed; write '{{' for the character itself");
    if (text_[at_] != '}') return failure(at_, "'}' should follow the name");
    ++at_;
    if (found.name.empty() && !found.quoted) return failure(begin, "'{}' names no field");
    return add(found, begin);
  }

  Result<void> quoted_name(std::string& name) {
    const std::size_t begin = at_++;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (peek(1) != '"') return ++at_, Result<void>();
        ++at_;
      }
      name += text_[at_];
    }
    return failure(begin, "the quoted name is never closed");
  }

  Result<void> width(std::size_t& width) {
    const std::size_t begin = at_++;
    const bool padded = peek(0) == '0';
    const char* const digits = text_.data() + at_;
    const auto [behind, error] = std::from_chars(digits, text_.data() + text_.size(), width);
    if (!padded || error != std::errc() || width == 0 || width > kKeyBytesMax) {
      return failure(begin, fmt::format("the width is written :0W, with W from 1 to {}", kKeyBytesMax));
    }
    at_ += static_cast<std::size_t>(behind - digits);
    return {};
  }

  Result<void> add(const Placeholder& found, std::size_t begin) {
    TextTemplate::Part part{.width = found.width, .at_byte = begin};
    part.kind = found.quoted             ? TextTemplate::Kind::field
                : found.name == "seq"    ? TextTemplate::Kind::seq
                : found.name == "time"   ? TextTemplate::Kind::time
                : found.name == "source" ? TextTemplate::Kind::source
                                         : TextTemplate::Kind::field;
    if (part.kind == TextTemplate::Kind::seq && part.width != 0) {
      return failure(begin, "{seq} takes no width: it is 20 digits, or 8 bytes where it is the whole key");
    }
    if (part.kind == TextTemplate::Kind::field) {
      auto path = path_of(found.name, begin);
      if (!path) return tl::unexpected<Error>(std::move(path).error());
      const auto known = std::find(fields_.begin(), fields_.end(), *path);
      part.field = static_cast<std::size_t>(known - fields_.begin());
      if (known == fields_.end()) fields_.push_back(*std::move(path));
    }
    parts_.push_back(std::move(part));
    return {};
  }

  Result<FieldPath> path_of(std::string_view name, std::size_t begin) const {
    FieldPath path;
    if (name.empty() || name[0] != '/') {
      path.steps.emplace_back(name);
      return path;
    }
    for (std::size_t at = 0; at < name.size(); ++at) {
      if (name[at] == '/') {
        path.steps.emplace_back();
      } else if (name[at] != '~') {
        path.steps.back() += name[at];
      } else if (++at < name.size() && (name[at] == '0' || name[at] == '1')) {
        path.steps.back() += name[at] == '0' ? '~' : '/';
      } else {
        return failure(begin, "'~' in a JSON pointer is written '~0' ('~1' is '/')");
      }
    }
    return path;
  }

  std::string_view what_;
  std::string_view text_;
  std::vector<FieldPath>& fields_;
  std::vector<TextTemplate::Part> parts_;
  std::size_t at_ = 0;
};

}  // namespace

std::string FieldPath::text() const {
  if (steps.size() == 1) return steps[0];
  std::string text;
  for (const std::string& step : steps) {
    text += '/';
    for (const char c : step) {
      if (c == '~') text += "~0";
      if (c == '/') text += "~1";
      if (c != '~' && c != '/') text += c;
    }
  }
  return text;
}

Result<TextTemplate> TextTemplate::compile(std::string_view what, std::string_view text,
                                           std::vector<FieldPath>& fields) {
  auto parts = Compiler(what, text, fields).parts();
  if (!parts) return tl::unexpected<Error>(std::move(parts).error());
  TextTemplate compiled;
  compiled.text_ = text;
  compiled.parts_ = *std::move(parts);
  return compiled;
}

bool TextTemplate::contains(Kind kind) const noexcept {
  return std::any_of(parts_.begin(), parts_.end(), [kind](const Part& part) { return part.kind == kind; });
}

}  // namespace kvingest
