#include "service/group_view.hpp"

#include "base/check.hpp"

namespace kvingest {

Result<bool> GroupView::get(std::string_view key, Store::ValueVisitor visit) const {
  read_batch();
  if (!changed_.empty()) {
    const auto at = changed_.find(std::string(key));
    if (at != changed_.end()) {
      if (!at->second.erased) visit(batch_.bytes().substr(at->second.offset, at->second.bytes));
      return !at->second.erased;
    }
  }
  return store_.get(key, visit);
}

Result<void> GroupView::keys(FunctionRef<bool(std::string_view key)> visit) const {
  read_batch();
  bool more = true;
  for (const auto& [key, place] : changed_) {
    if (more && !place.erased) more = visit(key);
  }
  if (!more) return {};
  KV_TRY(store_.scan(
      {}, [&](std::string_view key, std::string_view) { return changed_.contains(std::string(key)) || visit(key); }));
  return {};
}

void GroupView::forget() {
  read_ = 0;
  changed_.clear();
}

void GroupView::read_batch() const {
  const std::string_view fresh = batch_.bytes().substr(read_);
  if (fresh.empty()) return;
  const auto read = for_each_operation(fresh, [this](const BatchOperation& op) -> Result<void> {
    if (op.space == Space::records) note(std::string(op.key), op.value, op.erase);
    return {};
  });
  KV_ASSERT(read.has_value());  // We have written it ourselves.
  read_ += fresh.size();
}

void GroupView::note(std::string key, std::string_view value, bool erased) const {
  const std::size_t offset = erased ? 0 : static_cast<std::size_t>(value.data() - batch_.bytes().data());
  changed_[std::move(key)] = {offset, value.size(), erased};
}

}  // namespace kvingest
