// apply.hpp -- walks the operations of a frame's payload, which lies in the log at `at`, and tells a target the place
// of each. A target has: put(space, key, place), erase(space, key, place in the log, bytes) and run(first, count,
// values, place of the first).
#pragma once

#include <string_view>

#include "kvingest/write_batch.hpp"
#include "storage/mmap/record_place.hpp"

namespace kvingest::mmap_store {

/// Fails with: corrupt (the payload is no sequence of operations).
template <class Target>
Result<void> apply_payload(std::string_view payload, Place at, Target& target) {
  BatchReader reader(payload);
  BatchEntry entry;
  while (true) {
    auto more = reader.next(entry);
    KV_TRY(more);
    if (!*more) return {};
    switch (entry.kind) {
      case WriteBatch::Kind::put:
      case WriteBatch::Kind::put_meta: {
        const auto bytes = static_cast<std::size_t>(entry.value.data() + entry.value.size() - payload.data());
        target.put(entry.space(), entry.key, RecordPlace(at + entry.offset, false, bytes - entry.offset));
        break;
      }
      case WriteBatch::Kind::erase:
      case WriteBatch::Kind::erase_meta:
        target.erase(entry.space(), entry.key, at + entry.offset,
                     static_cast<std::size_t>(entry.key.data() + entry.key.size() - payload.data()) - entry.offset);
        break;
      case WriteBatch::Kind::run:
        target.run(entry.first, entry.count, entry.value,
                   at + static_cast<std::size_t>(entry.value.data() - payload.data()));
        break;
    }
  }
}

/// Calls `visit(number, place)` for each record of a run whose records begin at `at`.
/// Fails with: corrupt (the run is cut short).
template <class F>
Result<void> for_each_in_run(std::uint64_t first, std::uint32_t count, std::string_view values, Place at, F&& visit) {
  RunReader reader(values);
  const char* begin = reader.position();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!reader.next()) return fail(Code::corrupt, "a run ends at record {} of {}", i, count);
    const auto offset = static_cast<std::size_t>(begin - values.data());
    visit(first + i, RecordPlace(at + offset, true, static_cast<std::size_t>(reader.position() - begin)));
    begin = reader.position();
  }
  return {};
}

}  // namespace kvingest::mmap_store
