#include "bench/ycsb_redis.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/interrupt.hpp"
#include "bench/clock.hpp"

namespace kvingest::bench {
namespace {

constexpr double kAnswerSecondsMax = 30;
constexpr std::size_t kPipelined = 500;           // Answers that may be owed while loading.
constexpr std::size_t kReplyBytesMax = 64 << 20;  // No answer to what is asked here is nearly so long.

/// An answer: its kind, as RESP marks it, and its text or number.
struct Reply {
  char kind = '-';  ///< + - : or $
  bool is_null = false;
  std::string_view text;  ///< Until the next one is read.
};

/// RESP over one connection.
class RespClient {
 public:
  explicit RespClient(feed::Stream stream) : stream_(std::move(stream)) { stream_.send_at_once(); }

  void add(std::initializer_list<std::string_view> words) {
    out_ += fmt::format("*{}\r\n", words.size());
    for (const std::string_view word : words) {
      out_ += fmt::format("${}\r\n", word.size());
      out_.append(word).append("\r\n");
    }
  }

  Result<void> send() {
    for (std::string_view rest = out_; !rest.empty();) {
      if (interrupted()) return fail(Code::io_error, "interrupted");
      auto sent = stream_.send_some(rest);
      KV_TRY(sent);
      rest.remove_prefix(*sent);
    }
    out_.clear();
    return {};
  }

  Result<Reply> receive() {
    in_.erase(0, std::exchange(used_, 0));
    auto line = take_line();
    KV_TRY(line);
    if (line->empty()) return fail(Code::io_error, "the server does not speak RESP");
    Reply reply{.kind = line->front(), .text = line->substr(1)};
    if (reply.kind == '-') return fail(Code::io_error, "the server says: {}", reply.text);
    if (reply.kind == '+' || reply.kind == ':') return reply;
    if (reply.kind != '$') return fail(Code::io_error, "the server does not speak RESP: '{}'", *line);
    auto bytes = number_in(reply.text);
    KV_TRY(bytes);
    reply.is_null = *bytes < 0;
    if (reply.is_null) return reply;
    if (static_cast<std::size_t>(*bytes) > kReplyBytesMax) return fail(Code::io_error, "an answer of {} bytes", *bytes);
    const std::size_t begin = used_;
    used_ += static_cast<std::size_t>(*bytes) + 2;
    KV_TRY(fill(used_));
    reply.text = std::string_view(in_).substr(begin, static_cast<std::size_t>(*bytes));
    return reply;
  }

  Result<Reply> ask(std::initializer_list<std::string_view> words) {
    add(words);
    KV_TRY(send());
    return receive();
  }

  static Result<std::int64_t> number_in(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      return fail(Code::io_error, "the server does not speak RESP: '{}' is no number", text);
    return number;
  }

 private:
  /// Until `bytes` have come.
  Result<void> fill(std::size_t bytes) {
    const auto start = Clock::now();
    while (in_.size() < bytes) {
      if (interrupted()) return fail(Code::io_error, "interrupted");
      if (seconds_since(start) > kAnswerSecondsMax) return fail(Code::io_error, "the server does not answer");
      std::array<char, 16'384> room;
      auto got = stream_.receive(room.data(), room.size());
      KV_TRY(got);
      if (got->ended) return fail(Code::io_error, "the server has closed the connection");
      in_.append(room.data(), got->bytes);
    }
    return {};
  }

  /// Without its end.
  Result<std::string_view> take_line() {
    std::size_t end = in_.find("\r\n");
    while (end == std::string::npos) {
      if (in_.size() > kReplyBytesMax)
        return fail(Code::io_error, "the server does not speak RESP: a line without end");
      KV_TRY(fill(in_.size() + 1));
      end = in_.find("\r\n");
    }
    used_ = end + 2;
    return std::string_view(in_).substr(0, end);
  }

  feed::Stream stream_;
  std::string out_;
  std::string in_;
  std::size_t used_ = 0;  ///< Of `in_`, by the answer that was read last.
};

class YcsbRedis final : public YcsbTarget {
 public:
  explicit YcsbRedis(RespClient client) : client_(std::move(client)) {}

  Result<void> put(std::string_view key, std::string_view value) override {
    auto reply = client_.ask({"SET", key, value});
    KV_TRY(reply);
    if (reply->text != "OK") return fail(Code::io_error, "SET is answered by '{}'", reply->text);
    if (!keys_.contains(key)) keys_.emplace(key);
    return {};
  }

  Result<void> load(std::string_view key, std::string_view value) override {
    client_.add({"SET", key, value});
    keys_.emplace(key);
    return ++owed_ < kPipelined ? Result<void>() : settle();
  }
  Result<void> load_end() override { return settle(); }

  Result<bool> get(std::string_view key, Store::ValueVisitor visit) override {
    auto reply = client_.ask({"GET", key});
    KV_TRY(reply);
    if (reply->kind != '$') return fail(Code::io_error, "GET is answered by '{}'", reply->text);
    if (!reply->is_null) visit(reply->text);
    return !reply->is_null;
  }

  Result<std::size_t> scan(std::string_view, std::size_t, Entry) override {
    return fail(Code::unsupported, "keys of this server have no order");
  }

  Result<std::uint64_t> count() override {
    auto reply = client_.ask({"DBSIZE"});
    KV_TRY(reply);
    auto number = RespClient::number_in(reply->text);
    KV_TRY(number);
    return static_cast<std::uint64_t>(*number);
  }

  /// What was put is taken away again.
  Result<void> close() override {
    for (const std::string& key : keys_) KV_TRY(client_.ask({"DEL", key}));
    keys_.clear();
    return {};
  }

  [[nodiscard]] bool is_ordered() const override { return false; }
  [[nodiscard]] std::string_view level() const override { return "server"; }

 private:
  Result<void> settle() {
    KV_TRY(client_.send());
    for (; owed_ > 0; --owed_) KV_TRY(client_.receive());
    return {};
  }

  RespClient client_;
  std::set<std::string, std::less<>> keys_;  ///< That were put.
  std::size_t owed_ = 0;
};

}  // namespace

Result<feed::Address> parse_external(std::string_view url) {
  constexpr std::string_view kScheme = "redis://";
  if (!url.starts_with(kScheme))
    return fail(Code::invalid_argument, "'{}' is no redis://127.0.0.1:PORT, the only kind of server there is", url);
  auto address = feed::Address::parse(url.substr(kScheme.size()));
  KV_TRY(address);
  constexpr std::array<std::string_view, 3> kHere = {"127.0.0.1", "localhost", "::1"};
  if (std::find(kHere.begin(), kHere.end(), address->host) == kHere.end())
    return fail(Code::invalid_argument, "{} is not this machine, and kvbench loads no other", address->host);
  return address;
}

Result<std::unique_ptr<YcsbTarget>> open_ycsb_redis(const feed::Address& address) {
  auto stream = feed::Stream::connect(address);
  if (!stream) return fail(std::move(stream).error(), "redis://{}", address.text());
  auto target = std::make_unique<YcsbRedis>(RespClient(*std::move(stream)));
  auto there = target->count();
  if (!there) return fail(std::move(there).error(), "redis://{}", address.text());
  if (*there != 0)
    return fail(Code::invalid_argument, "redis://{} holds {} keys: give a server, or a database, that holds none",
                address.text(), *there);
  return std::unique_ptr<YcsbTarget>(std::move(target));
}

}  // namespace kvingest::bench
