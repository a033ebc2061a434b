// admin.hpp -- KV.ADMIN: what kvq's commands ask of a store that a service has in use.
//
//   MARKER                                      engine, format version, time of creation, labels
//   COUNT                                       number of records
//   GET records|meta KEY                        a value, or null
//   RANGE records|meta FIRST LAST LIMIT FWD|REV key, value, key, value ..., some 1 MiB at most; '' is no bound
//   STATS                                       name, number, name, number ...
//   VERIFY                                      records, bytes checked, torn tail
//   BACKUP DIR, COMPACT                         through control.sock only: they write files
//
// Threads:  one call at a time, on a thread that serves nobody else. Lifetime: what it is given outlives it.
// Errors:   as the store has them.
#pragma once

#include <string>
#include <vector>

#include "kvingest/engine.hpp"
#include "net/resp_writer.hpp"
#include "service/committer.hpp"

namespace kvingest {

class Admin {
 public:
  Admin(const Store& store, Committer& committer, Marker marker)
      : store_(store), committer_(committer), marker_(std::move(marker)) {}

  Result<void> run(const std::vector<std::string>& words, bool local, net::RespWriter& to) const;

 private:
  Result<void> marker(const std::vector<std::string>& words, net::RespWriter& to) const;
  Result<void> count(const std::vector<std::string>& words, net::RespWriter& to) const;
  Result<void> get(const std::vector<std::string>& words, net::RespWriter& to) const;
  Result<void> range(const std::vector<std::string>& words, net::RespWriter& to) const;
  Result<void> stats(const std::vector<std::string>& words, net::RespWriter& to) const;
  Result<void> verify(const std::vector<std::string>& words, net::RespWriter& to) const;
  Result<void> backup(const std::vector<std::string>& words, net::RespWriter& to) const;
  Result<void> compact(const std::vector<std::string>& words, net::RespWriter& to) const;

  struct Row {
    std::string_view word;
    std::size_t words;
    bool local;
    Result<void> (Admin::*run)(const std::vector<std::string>& words, net::RespWriter& to) const;
  };
  static const Row kRows[8];

  const Store& store_;
  Committer& committer_;
  const Marker marker_;
};

}  // namespace kvingest
