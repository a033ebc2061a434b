// opened_store.hpp -- a store directory opened for reading, and what its marker says about the records in it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/engine.hpp"
#include "kvingest/store.hpp"
#include "record/record_plan.hpp"

namespace kvingest::query {

/// How the records of a store came to be, from the labels of its marker.
struct RecordLabels {
  std::string format;                ///< "line", "kv", "csv" or "json"; empty where not known.
  bool seq_keys = false;             ///< Keyed by arrival number alone.
  bool whole_message = false;        ///< Values are messages as they came.
  char separator = ',';              ///< Of csv.
  std::vector<std::string> columns;  ///< Of csv, where known.

  static RecordLabels of(const Marker& marker);
};

/// The options under which the records of a store were made, but for a header: the columns are those the marker names.
[[nodiscard]] Result<RecordOptions> record_options_of(const Marker& marker);

struct OpenedStore {
  Marker marker;  ///< With the columns that a csv header named.
  RecordLabels labels;
  std::unique_ptr<Store> store;
};

/// A store with what its marker and its meta space say about the records.
[[nodiscard]] Result<OpenedStore> opened_store(Marker marker, std::unique_ptr<Store> store);

/// Opens the store in `dir` for reading with the engine its marker names; not a byte of it changes. `notice` takes one
/// sentence, for example on a torn tail. Fails as open_store() does.
[[nodiscard]] Result<OpenedStore> open_for_reading(const std::filesystem::path& dir,
                                                   std::function<void(std::string_view)> notice);
/// The same for changing it: nobody else may have it open, and an unfinished conversion is refused.
[[nodiscard]] Result<OpenedStore> open_for_writing(const std::filesystem::path& dir,
                                                   std::function<void(std::string_view)> notice);

}  // namespace kvingest::query
