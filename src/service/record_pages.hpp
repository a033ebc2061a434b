// record_pages.hpp -- the records behind the status page: keys in order, one value, a numeric field over keys.
//
// Keys and values travel as the text that kvq prints and takes (record/text_escape.hpp), so that any bytes come back as
// they were. What one answer may hold, and what it may read, is bounded whatever is asked for.
//
// Threads:  any; several at once.
// Lifetime: store, plan and columns outlive it.
// Errors:   an answer with a status of HTTP and {"error": one sentence}.
#pragma once

#include "kvingest/store.hpp"
#include "net/status_server.hpp"
#include "record/agreed_columns.hpp"
#include "record/record_plan.hpp"

namespace kvingest {

class RecordPages {
 public:
  RecordPages(const Store& store, const RecordPlan& plan, const AgreedColumns& columns)
      : store_(&store), plan_(&plan), columns_(&columns), seq_keys_(plan.key().is_seq_alone()) {}

  /// prefix= or, where keys are arrival numbers, from=; after=KEY to go on behind a key; limit=.
  [[nodiscard]] net::PageReply keys(const net::PageQuery& query) const;
  /// key=
  [[nodiscard]] net::PageReply value(const net::PageQuery& query) const;
  /// As keys(), and field=: a member or pointer of json, a column of csv; without it the value is the number.
  [[nodiscard]] net::PageReply series(const net::PageQuery& query) const;

 private:
  struct Asked;
  [[nodiscard]] Result<Asked> read(const net::PageQuery& query, std::uint64_t limit, std::uint64_t limit_max) const;
  [[nodiscard]] std::string key_text(std::string_view key) const;

  const Store* store_;
  const RecordPlan* plan_;
  const AgreedColumns* columns_;
  bool seq_keys_;
};

}  // namespace kvingest
