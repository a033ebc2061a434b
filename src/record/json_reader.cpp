// The walk through one JSON object: every value is checked, and those that the plan wants are noted.
#include <algorithm>

#include "record/field_reader.hpp"
#include "record/json_paths.hpp"
#include "record/json_scanner.hpp"

namespace kvingest {
namespace {

constexpr std::size_t kDepthMax = 256;  // Each level is a call.

class JsonReader final : public FieldReader {
 public:
  explicit JsonReader(const RecordPlan& plan) : plan_(plan), paths_(plan.fields()) {}

  Found read(std::string_view message, std::span<std::string_view> fields) override {
    std::fill(fields.begin(), fields.end(), std::string_view());
    fields_ = fields;
    unfit_field_ = JsonPaths::kNone;
    paths_.start();
    scanner_.start(message);
    if (!text()) return bad("bad_json", "{} at byte {}", scanner_.problem(), scanner_.offset() + 1);
    if (unfit_field_ == JsonPaths::kNone) return Found::fields;
    return bad("bad_type", "field '{}' is {}", plan_.fields()[unfit_field_].text(), unfit_kind_);
  }

 private:
  bool text() {
    if (scanner_.peek() != '{') return scanner_.refuse("not an object");
    if (!object(paths_.root(), 1)) return false;
    return scanner_.at_end() || scanner_.refuse("more behind the object");
  }

  bool object(JsonPaths::Node* node, std::size_t depth) {
    if (!scanner_.take('{') || scanner_.take('}')) return true;
    do {
      std::string_view name;
      if (scanner_.peek() != '"') return scanner_.refuse("a member's name should follow");
      if (!scanner_.string(name)) return false;
      JsonPaths::Node* const member = paths_.child(node, name);
      if (!scanner_.take(':')) return scanner_.refuse("':' should follow the name");
      if (!value(member, depth)) return false;
    } while (scanner_.take(','));
    return scanner_.take('}') || scanner_.refuse("',' or '}' should follow the member");
  }

  bool array(JsonPaths::Node* node, std::size_t depth) {
    if (!scanner_.take('[') || scanner_.take(']')) return true;
    std::size_t index = 0;
    do {
      if (!value(paths_.child(node, index++), depth)) return false;
    } while (scanner_.take(','));
    return scanner_.take(']') || scanner_.refuse("',' or ']' should follow the element");
  }

  bool value(JsonPaths::Node* node, std::size_t depth) {
    if (depth == kDepthMax) return scanner_.refuse("nested too deeply");
    std::string_view text;
    switch (scanner_.peek()) {
      case '{':
        return unfit(node, "an object"), object(node, depth + 1);
      case '[':
        return unfit(node, "an array"), array(node, depth + 1);
      case '"':
        return scanner_.string(text) && take(node, text);
      case 't':
        return scanner_.word("true") && take(node, "true");
      case 'f':
        return scanner_.word("false") && take(node, "false");
      case 'n':
        return unfit(node, "null"), scanner_.word("null");
      default:
        return scanner_.number(text) && take(node, text);
    }
  }

  bool take(const JsonPaths::Node* node, std::string_view text) {
    if (node != nullptr && node->field != JsonPaths::kNone) fields_[node->field] = text;
    return true;
  }
  void unfit(const JsonPaths::Node* node, std::string_view kind) {
    if (node == nullptr || node->field == JsonPaths::kNone || unfit_field_ != JsonPaths::kNone) return;
    unfit_field_ = node->field;
    unfit_kind_ = kind;
  }

  const RecordPlan& plan_;
  JsonPaths paths_;
  JsonScanner scanner_;
  std::span<std::string_view> fields_;
  std::size_t unfit_field_ = JsonPaths::kNone;  // A wanted one that is no text or number.
  std::string_view unfit_kind_;
};

}  // namespace

std::unique_ptr<FieldReader> make_json_reader(const RecordPlan& plan) {
  return std::make_unique<JsonReader>(plan);
}

}  // namespace kvingest
