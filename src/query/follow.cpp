#include "query/follow.hpp"

#include "query/read_commands.hpp"
#include "query/remote_store.hpp"
#include "query/stored_ledger.hpp"
#include "record/seq_in_key.hpp"

namespace kvingest::query {

Result<void> follow(const Service& service, std::uint64_t count, Output& out, FunctionRef<bool()> go_on) {
  const auto opened = open_remote(service);
  KV_TRY(opened);
  const auto label = opened->marker.labels.find("key");
  const auto seq_in_key = SeqInKey::of(label == opened->marker.labels.end() ? std::string_view() : label->second);
  KV_TRY(seq_in_key);
  if (!seq_in_key->leads()) {
    return fail(Code::unsupported,
                "tail -f follows arrival numbers, and the keys of this store do not begin with {{seq}}");
  }
  const auto ledger = read_ledger(*opened->store);
  KV_TRY(ledger);
  const bool seq_keys = opened->labels.seq_keys;
  KV_TRY(print_tail(*opened->store, count, seq_keys, RowForm::text, out, seq_in_key->first_key(ledger->seq + 1)));
  auto client = RespClient::connect(service);
  KV_TRY(client);
  Rows rows(RowForm::text, seq_keys);
  std::string seen = std::to_string(ledger->seq);
  while (out.is_wanted() && go_on()) {
    const auto reply = client->ask({"KV.TAIL", seen, "COUNT", "1000", "BLOCK", "1000"});
    KV_TRY(reply);
    if (reply->items.size() != 2) continue;  // Nothing came within the second.
    seen = std::to_string(reply->items[0].integer);
    const auto& entries = reply->items[1].items;
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) rows.add(out.text(), entries[i].text, entries[i + 1].text);
    KV_TRY(out.flush());
  }
  return {};
}

}  // namespace kvingest::query
