#include "record/agreed_columns.hpp"

#include <utility>

namespace kvingest {

void AgreedColumns::set(std::vector<std::string> columns) {
  const std::lock_guard lock(mutex_);
  columns_ = std::move(columns);
}

std::vector<std::string> AgreedColumns::columns() const {
  const std::lock_guard lock(mutex_);
  return columns_;
}

Verdict AgreedColumns::add(MessageParser& parser, std::string_view message, std::uint64_t time_ns,
                           std::string_view source, WriteBatch& batch) {
  const std::lock_guard lock(mutex_);
  if (!columns_.empty()) parser.expect_columns(columns_);
  const Verdict verdict = parser.add(message, time_ns, source, batch);
  if (columns_.empty() && verdict.outcome == Outcome::blank) columns_ = parser.columns();
  return verdict;
}

}  // namespace kvingest
