// The formats that need no parsing to speak of: line and kv.
#include "record/field_reader.hpp"

namespace kvingest {
namespace {

class LineReader final : public FieldReader {
 public:
  Found read(std::string_view message, std::span<std::string_view> fields) override {
    for (std::string_view& field : fields) field = message;  // {line} is the only one there is.
    return Found::fields;
  }
};

class KvReader final : public FieldReader {
 public:
  explicit KvReader(const RecordPlan& plan) : plan_(plan) {}

  Found read(std::string_view message, std::span<std::string_view> fields) override {
    const std::size_t at = message.find(plan_.separator());
    if (at == std::string_view::npos) return bad("bad_kv", "there is no separator '{}'", plan_.separator());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      fields[i] = plan_.fields()[i].steps[0] == "key" ? message.substr(0, at) : message.substr(at + 1);
    }
    return Found::fields;
  }

 private:
  const RecordPlan& plan_;
};

}  // namespace

std::unique_ptr<FieldReader> make_line_reader() {
  return std::make_unique<LineReader>();
}
std::unique_ptr<FieldReader> make_kv_reader(const RecordPlan& plan) {
  return std::make_unique<KvReader>(plan);
}

}  // namespace kvingest
