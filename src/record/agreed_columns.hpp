// agreed_columns.hpp -- the columns that every csv header of a store has to name: those the store was made with, else
// those of the first header that comes.
//
// Threads: any; two connections that send their headers at the same moment agree on one of them.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "record/message_parser.hpp"

namespace kvingest {

class AgreedColumns {
 public:
  /// What the store knows already.
  void set(std::vector<std::string> columns);

  /// As far as they are known.
  [[nodiscard]] std::vector<std::string> columns() const;

  /// parser.add() of a message that may be a header: one that differs is rejected as header_changed, and the first one
  /// that is good becomes what later ones are held against.
  Verdict add(MessageParser& parser, std::string_view message, std::uint64_t time_ns, std::string_view source,
              WriteBatch& batch);

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> columns_;  // Guarded by mutex_; empty: any header will do.
};

}  // namespace kvingest
