// An encoded batch from a damaged file: nothing is read outside of it, and what it decodes to, encoded anew, decodes to
// the same.
#include <vector>

#include "kvingest/write_batch.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace kvingest;

struct Change {
  Space space;
  bool erase;
  std::string key;
  std::string value;
  bool operator==(const Change&) const = default;
};

bool lies_within(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

/// All changes, or nothing where the encoding is damaged.
std::vector<Change> changes_of(std::string_view bytes, bool& sound) {
  std::vector<Change> changes;
  const auto walked = for_each_operation(bytes, [&](const BatchOperation& operation) -> Result<void> {
    KV_ASSERT(lies_within(operation.value, bytes));
    changes.push_back({operation.space, operation.erase, std::string(operation.key), std::string(operation.value)});
    return {};
  });
  sound = walked.has_value();
  return changes;
}

void check_entries(std::string_view bytes) {
  BatchReader reader(bytes);
  BatchEntry entry;
  std::size_t last = 0;
  for (bool first = true;; first = false) {
    const auto more = reader.next(entry);
    if (!more || !*more) return;
    KV_ASSERT(lies_within(entry.key, bytes) && lies_within(entry.value, bytes));
    KV_ASSERT(entry.offset < bytes.size() && (first || entry.offset > last));
    last = entry.offset;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::view_of(data, size);
  check_entries(bytes);
  bool sound = false;
  const std::vector<Change> changes = changes_of(bytes, sound);
  if (!sound) return 0;
  WriteBatch again;
  for (const Change& change : changes) {
    if (change.space == Space::meta)
      change.erase ? again.erase_meta(change.key) : again.put_meta(change.key, change.value);
    else
      change.erase ? again.erase(change.key) : again.put(change.key, change.value);
  }
  if (!again.check()) return 0;  // A key that no store would take.
  const std::vector<Change> same = changes_of(again.bytes(), sound);
  KV_ASSERT(sound && same == changes);
  return 0;
}
