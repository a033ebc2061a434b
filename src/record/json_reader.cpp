#include "record/field_reader.hpp"

namespace kvingest {
namespace {

class JsonReader final : public FieldReader {
 public:
  Found read(std::string_view, std::span<std::string_view>) override { return bad("bad_json", "not yet"); }
};

}  // namespace

std::unique_ptr<FieldReader> make_json_reader(const RecordPlan&) {
  return std::make_unique<JsonReader>();
}

}  // namespace kvingest
