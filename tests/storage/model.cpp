#include "tests/storage/model.hpp"

#include <algorithm>
#include <iterator>

#include "kvingest/codec/fixed.hpp"

namespace kvingest::test {

std::string seq_key(std::uint64_t number) {
  std::string key(kSeqKeyBytes, '\0');
  for (std::size_t i = kSeqKeyBytes; i-- > 0; number >>= 8) key[i] = static_cast<char>(number & 0xff);
  return key;
}

WriteBatch to_batch(std::span<const Operation> operations, std::uint64_t first) {
  WriteBatch batch;
  for (const Operation& each : operations) {
    switch (each.kind) {
      case Operation::Kind::put:
        batch.put(each.key, each.value);
        break;
      case Operation::Kind::next:
        batch.put_next(each.value);
        break;
      case Operation::Kind::erase:
        batch.erase(each.key);
        break;
      case Operation::Kind::put_meta:
        batch.put_meta(each.key, each.value);
        break;
      case Operation::Kind::erase_meta:
        batch.erase_meta(each.key);
        break;
    }
  }
  batch.number(first);
  return batch;
}

void Model::apply(std::span<const Operation> operations, std::uint64_t first) {
  for (const Operation& each : operations) {
    switch (each.kind) {
      case Operation::Kind::put:
        records_[each.key] = each.value;
        ++first;
        break;
      case Operation::Kind::next:
        records_[seq_key(first++)] = each.value;
        break;
      case Operation::Kind::erase:
        records_.erase(each.key);
        break;
      case Operation::Kind::put_meta:
        meta_[each.key] = each.value;
        break;
      case Operation::Kind::erase_meta:
        meta_.erase(each.key);
        break;
    }
  }
}

Rows Model::scan(Space which, const Range& range) const {
  Rows rows;
  for (const auto& [key, value] : space(which)) {
    const bool inside = (!range.first || key >= *range.first) && (!range.last || key < *range.last);
    if (inside) rows.emplace_back(key, value);
  }
  if (range.reverse) std::reverse(rows.begin(), rows.end());
  if (rows.size() > range.limit) rows.resize(range.limit);
  return rows;
}

std::string OperationSource::bytes(std::size_t count) {
  std::string made(count, '\0');
  for (char& each : made) each = static_cast<char>(random_());
  return made;
}

std::string OperationSource::key() {
  switch (below(8)) {
    case 0:
      return seq_key(1 + below(300));  // Where runs put theirs.
    case 1:
      return std::string(1 + below(4), static_cast<char>(below(2) == 0 ? 0x00 : 0xff));
    case 2:
      return bytes(1 + below(2));
    case 3:  // Long keys that differ in their last byte only.
      return std::string(kKeyBytesMax - 1, 'L') + static_cast<char>('a' + below(16));
    default:
      return "key/" + std::to_string(below(400));
  }
}

std::vector<Operation> OperationSource::batch(std::size_t operations_max, std::size_t value_bytes_max) {
  using Kind = Operation::Kind;
  std::vector<Operation> operations;
  const std::size_t count = below(operations_max + 1);
  while (operations.size() < count) {
    const std::string value =
        bytes(below(16) == 0 ? below(value_bytes_max + 1) : below(std::min<std::size_t>(value_bytes_max, 60) + 1));
    switch (below(10)) {
      case 0:
      case 1:
        operations.push_back({Kind::erase, key(), {}});
        break;
      case 2:
        operations.push_back({Kind::put_meta, key(), value});
        break;
      case 3:
        operations.push_back({Kind::erase_meta, key(), {}});
        break;
      case 4:
      case 5:
        for (std::size_t run = 1 + below(5); run-- > 0;) operations.push_back({Kind::next, {}, value});
        break;
      default:
        operations.push_back({Kind::put, key(), value});
    }
  }
  return operations;
}

}  // namespace kvingest::test
