#include "service/store_columns.hpp"

#include "kvingest/ledger.hpp"

namespace kvingest {
namespace {

/// As a header named them; empty: there was none.
Result<std::string> columns_of_header(const Store& store) {
  Result<std::string> columns;
  KV_TRY(store.get(Space::meta, kMetaColumns, [&](std::string_view value) { columns = decode_columns(value); }));
  return columns;
}

Result<std::string> columns_of_store(const Store& store, const StoreOptions& options) {
  auto columns = columns_of_header(store);
  KV_TRY(columns);
  if (!columns->empty() || !store.capabilities().persistent) return columns;
  const auto marker = read_marker(options.dir);
  KV_TRY(marker);
  const auto label = marker->labels.find("columns");
  return label == marker->labels.end() ? std::string() : label->second;
}

}  // namespace

Result<std::vector<std::string>> settle_columns(Store& store, const RecordPlan& plan, const StoreOptions& options) {
  if (plan.format() != MessageFormat::csv) return std::vector<std::string>();
  if (plan.columns().empty()) {
    if (options.force_labels) return std::vector<std::string>();
    const auto columns = columns_of_store(store, options);
    KV_TRY(columns);
    if (columns->empty()) return std::vector<std::string>();
    return split_columns(*columns);
  }
  const auto kept = columns_of_header(store);
  KV_TRY(kept);
  const std::string wanted = join_columns(plan.columns());
  if (kept->empty() || *kept == wanted) return plan.columns();
  if (!options.force_labels) {
    return fail(Code::invalid_argument,
                "the store in {} has the columns '{}', which a header named, not '{}'; give the ones it has, or "
                "--force-template to change them",
                options.dir.native(), *kept, wanted);
  }
  WriteBatch forget;  // The marker has the new ones.
  forget.erase_meta(kMetaColumns);
  KV_TRY(store.write(forget, Durability::disk));
  return plan.columns();
}

}  // namespace kvingest
