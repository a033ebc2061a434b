#include "tests/tidy/rules.hpp"

namespace kvingest::tidy {
namespace {

/// Walks over `text` and writes it to `out` with what is no code blanked out.
class Blanker {
 public:
  explicit Blanker(std::string_view text) : text_(text) { out_.reserve(text.size()); }

  std::string run() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        blank_until("\n", false);
      } else if (starts("/*")) {
        blank_until("*/", true);
      } else if (starts("R\"") && !inside_word()) {
        blank_raw_string();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !inside_word())) {
        blank_literal(text_[at_]);
      } else {
        out_.push_back(text_[at_++]);
      }
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool starts(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  /// A quote behind a letter or digit is a digit separator (1'000) or a prefix that changes nothing here.
  [[nodiscard]] bool inside_word() const {
    return at_ > 0 && (text_[at_ - 1] == '_' || std::isalnum(static_cast<unsigned char>(text_[at_ - 1])) != 0);
  }

  void blank(std::size_t count) {
    for (; count > 0 && at_ < text_.size(); --count, ++at_) out_.push_back(text_[at_] == '\n' ? '\n' : ' ');
  }

  void blank_until(std::string_view end, bool with_end) {
    const std::size_t found = text_.find(end, at_ + 2);
    if (found == std::string_view::npos) return blank(text_.size() - at_);
    blank(found - at_ + (with_end ? end.size() : 0));
  }

  void blank_raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return blank(text_.size() - at_);
    const std::string end = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
    blank_until(end, true);
  }

  void blank_literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    blank(end + 1 - at_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string code_only(std::string_view text) {
  return Blanker(text).run();
}

}  // namespace kvingest::tidy
