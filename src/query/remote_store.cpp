#include "query/remote_store.hpp"

#include <algorithm>

#include "storage/store_directory.hpp"

namespace kvingest::query {
namespace {

constexpr std::size_t kRemotePageRows = 1'000;
constexpr std::size_t kEraseKeysMax = 1'000;

std::string_view word_of(Space space) {
  return space == Space::records ? "records" : "meta";
}

class RemoteStore final : public Store {
 public:
  RemoteStore(RespClient client, std::string place) : client_(std::move(client)), place_(std::move(place)) {}

  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }

  Result<void> write(const WriteBatch& batch, Durability) override {
    std::vector<std::string> keys;
    KV_TRY(for_each_operation(batch.bytes(), [&](const BatchOperation& op) -> Result<void> {
      if (op.space == Space::meta) return {};  // The service counts by itself.
      if (!op.erase) return refuse("puts");
      keys.emplace_back(op.key);
      return {};
    }));
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < keys.size(); at += kEraseKeysMax) {
      words.assign(1, "DEL");
      words.insert(words.end(), keys.begin() + static_cast<std::ptrdiff_t>(at),
                   keys.begin() + static_cast<std::ptrdiff_t>(std::min(at + kEraseKeysMax, keys.size())));
      KV_TRY(client_.ask(words));
    }
    return {};
  }

  Result<bool> get(Space space, std::string_view key, ValueVisitor visit) const override {
    const auto reply = client_.ask({"KV.ADMIN", "GET", word_of(space), key});
    KV_TRY(reply);
    if (reply->kind != RespReply::Kind::text) return false;
    visit(reply->text);
    return true;
  }

  Result<std::size_t> multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const override {
    std::size_t found = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto one = get(Space::records, keys[i], [&](std::string_view value) { visit(i, value); });
      KV_TRY(one);
      found += *one ? 1 : 0;
    }
    return found;
  }

  Result<std::size_t> scan(Space space, const Range& range, EntryVisitor visit) const override {
    const std::size_t limit = std::min(range.limit, kRemotePageRows);
    std::optional<std::string> first;
    std::optional<std::string> last;
    if (range.first) first = *range.first;
    if (range.last) last = *range.last;
    std::size_t passed = 0;
    while (passed < range.limit) {
      const auto reply =
          client_.ask({"KV.ADMIN", "RANGE", word_of(space), first.value_or(""), last.value_or(""),
                       std::to_string(std::min(limit, range.limit - passed)), range.reverse ? "REV" : "FWD"});
      KV_TRY(reply);
      const auto& items = reply->items;
      for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        ++passed;
        if (!visit(items[i].text, items[i + 1].text)) return passed;
      }
      if (items.size() < 2) return passed;
      if (range.reverse) {
        last = items[items.size() - 2].text;
      } else {
        first = items[items.size() - 2].text + '\0';
      }
    }
    return passed;
  }

  Result<void> sync() override { return {}; }  // What was answered is durable.
  [[nodiscard]] std::uint64_t last_batch() const noexcept override { return 0; }

  Result<std::uint64_t> count() const override {
    const auto reply = client_.ask({"KV.ADMIN", "COUNT"});
    KV_TRY(reply);
    return static_cast<std::uint64_t>(reply->integer);
  }

  void stats(StatVisitor visit) const override {
    const auto reply = client_.ask({"KV.ADMIN", "STATS"});
    if (!reply) return;
    for (std::size_t i = 0; i + 1 < reply->items.size(); i += 2) {
      visit(reply->items[i].text, static_cast<std::uint64_t>(reply->items[i + 1].integer));
    }
  }

  Result<VerifyReport> verify() const override {
    const auto reply = client_.ask({"KV.ADMIN", "VERIFY"});
    KV_TRY(reply);
    if (reply->items.size() != 3) return fail(Code::io_error, "{} answers VERIFY with something else", place_);
    return VerifyReport{.records = static_cast<std::uint64_t>(reply->items[0].integer),
                        .bytes_checked = static_cast<std::uint64_t>(reply->items[1].integer),
                        .torn_tail = reply->items[2].text};
  }

  Result<void> compact() override {
    KV_TRY(client_.ask({"KV.ADMIN", "COMPACT"}));
    return {};
  }

  Result<void> backup(const std::filesystem::path& to) const override {
    KV_TRY(client_.ask({"KV.ADMIN", "BACKUP", std::filesystem::absolute(to).native()}));
    return {};
  }

  Result<void> close() override { return {}; }

 private:
  tl::unexpected<Error> refuse(std::string_view what) const {
    return fail(Code::unsupported, "a service has this store in use ({}), and {} are its own to make; stop it first",
                place_, what);
  }

  mutable RespClient client_;
  std::string place_;
};

Result<Marker> read_remote_marker(RespClient& client, const std::string& place) {
  const auto reply = client.ask({"KV.ADMIN", "MARKER"});
  KV_TRY(reply);
  if (reply->items.size() != 4) return fail(Code::io_error, "{} is no kvingest that kvq can ask", place);
  Marker marker;
  marker.engine = reply->items[0].text;
  marker.format_version = static_cast<std::uint32_t>(reply->items[1].integer);
  marker.created = reply->items[2].text;
  marker.ready = true;
  const auto& labels = reply->items[3].items;
  for (std::size_t i = 0; i + 1 < labels.size(); i += 2) marker.labels[labels[i].text] = labels[i + 1].text;
  return marker;
}

}  // namespace

Result<OpenedStore> open_remote(const Service& service) {
  const std::string place = service.endpoint.text();
  auto client = RespClient::connect(service);
  KV_TRY(client);
  auto marker = read_remote_marker(*client, place);
  KV_TRY(marker);
  return opened_store(*std::move(marker), std::make_unique<RemoteStore>(*std::move(client), place));
}

std::optional<Service> service_in(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / kControlSocketName;
  std::error_code ignored;
  if (!std::filesystem::is_socket(path, ignored)) return std::nullopt;
  auto endpoint = net::parse_endpoint("unix:" + path.native());
  if (!endpoint) return std::nullopt;
  return Service{*std::move(endpoint), {}};
}

}  // namespace kvingest::query
