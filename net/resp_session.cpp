#include "net/resp_session.hpp"

#include <algorithm>

namespace kvingest::net {
namespace {

constexpr std::size_t kTransactionBytesMax = std::size_t{64} << 20;
constexpr std::size_t kCommandBytes = 64;  // What a queued command takes beside its words, at least.

/// The store itself, as it is now.
class StoredRecords final : public RecordView {
 public:
  explicit StoredRecords(const Store& store) : store_(store) {}
  Result<bool> get(std::string_view key, Store::ValueVisitor visit) const override { return store_.get(key, visit); }
  Result<void> keys(FunctionRef<bool(std::string_view key)> visit) const override {
    KV_TRY(store_.scan({}, [&](std::string_view key, std::string_view) { return visit(key); }));
    return {};
  }

 private:
  const Store& store_;
};

/// As Redis puts it: up to 128 bytes of the name and of each argument.
std::string unknown_command(Words words) {
  constexpr std::size_t kShown = 128;
  std::string text =
      "ERR unknown command '" + std::string(words[0].substr(0, kShown)) + "', with args beginning with: ";
  std::string args;
  for (std::size_t i = 1; i < words.size() && args.size() < kShown; ++i) {
    args += '\'';
    args += words[i].substr(0, kShown - args.size());
    args += "' ";
  }
  return text + args;
}

}  // namespace

RespSession::RespSession(RespHost& host, std::uint64_t id, std::string peer, bool local)
    : host_(host), id_(id), peer_(std::move(peer)), local_(local) {
  // Who may open control.sock owns the store's files.
  if (host_.options().tokens == nullptr || local_) {
    let_in({.name = "default", .writes = true});
  } else {
    parser_.limit(RespLimits::of_stranger());
  }
}

void RespSession::let_in(TokenOwner owner) {
  owner_ = std::move(owner);
  parser_.limit(RespLimits{});
}

std::size_t RespSession::take(std::string_view input) {
  std::size_t taken = 0;
  while (!ended_ && !waits() && output_.size() < kOutputBytesMax) {
    const RespParser::Step step = parser_.next(input.substr(taken));
    if (step == RespParser::Step::more) break;
    if (step == RespParser::Step::broken) {
      for_writes_ = writes_pending_ > 0;
      if (for_writes_) break;
      error(parser_.problem());
      end();
      break;
    }
    if (!execute(parser_.words())) break;
    taken += parser_.done();
  }
  return taken;
}

std::size_t RespSession::memory_bytes() const noexcept {
  return output_.capacity() + parser_.memory_bytes() + (transaction_ ? transaction_->bytes : 0);
}

/// Why `words` cannot be run now; empty: they can.
std::string RespSession::problem_of(const RespCommand* command, Words words) const {
  if (command == nullptr) return unknown_command(words);
  if (!command->takes(words.size())) {
    return fmt::format("ERR wrong number of arguments for '{}' command", command->name);
  }
  if (!owner_ && !command->before_auth) return "NOAUTH Authentication required.";
  if (owner_ && !owner_->writes && command->kind == CommandKind::write) {
    return fmt::format("NOPERM this user has no permissions to run the '{}' command", command->name);
  }
  return command->check == nullptr ? std::string() : command->check(words, host_.options());
}

/// False: nothing has been done, the request is to be given again when what is under way has come back.
bool RespSession::execute(Words words) {
  if (words.empty()) return true;
  const RespCommand* const command = find_command(words[0]);
  const std::string problem = problem_of(command, words);
  const bool writes = problem.empty() && command->kind == CommandKind::write && !transaction_;
  if (writes) return execute_write(*command, words);
  for_writes_ = writes_pending_ > 0;
  if (for_writes_) return false;
  if (!problem.empty()) {
    refuse(problem);
    // A browser that was made to send requests here: each line of its header would be one.
    if (same_word(words[0], "post") || same_word(words[0], "host:")) end();
    return true;
  }
  last_command_ = command->name;
  const bool at_once = command->run_session != nullptr && command->in_transaction;
  if (transaction_ && !at_once) {
    queue(*command, words);
  } else if (command->run_records != nullptr) {
    execute_read(*command, words);
  } else {
    command->run_session(*this, words);
  }
  return true;
}

bool RespSession::execute_write(const RespCommand& command, Words words) {
  for_room_ = !host_.has_room();
  if (for_room_) return false;
  host_.writes().add(id_, version_, command, words);
  ++writes_pending_;
  return true;
}

void RespSession::execute_read(const RespCommand& command, Words words) {
  const StoredRecords records(*host_.options().store);
  RespWriter to = reply();
  RespCall call{words, to, records, host_.options()};
  command.run_records(call);
}

void RespSession::refuse(std::string_view problem) {
  error(problem);
  if (transaction_) transaction_->broken = true;
}

void RespSession::queue(const RespCommand& command, Words words) {
  if (command.run_records == nullptr) {
    return refuse(fmt::format("ERR {} cannot be part of a transaction here", command.name));
  }
  std::size_t bytes = kCommandBytes;
  for (const std::string_view word : words) bytes += word.size() + sizeof(std::string);
  if (transaction_->bytes + bytes > kTransactionBytesMax) {
    return refuse("ERR a transaction of more than 64 MiB; send it in parts");
  }
  transaction_->bytes += bytes;
  transaction_->commands.push_back({&command, std::vector<std::string>(words.begin(), words.end())});
  reply().simple("QUEUED");
}

void RespSession::multi() {
  if (transaction_) return error("ERR MULTI calls can not be nested");
  transaction_ = std::make_unique<Transaction>();
  reply().ok();
}

void RespSession::discard() {
  if (!transaction_) return error("ERR DISCARD without MULTI");
  transaction_.reset();
  reply().ok();
}

/// All commands are decided together and their changes are one batch.
void RespSession::exec() {
  if (!transaction_) return error("ERR EXEC without MULTI");
  const auto transaction = std::move(transaction_);
  if (transaction->broken) return error("EXECABORT Transaction discarded because of previous errors.");
  if (transaction->commands.empty()) return reply().array(0);
  RespWrites& writes = host_.writes();
  writes.add_transaction(id_, version_, transaction->commands.size());
  std::vector<std::string_view> words;
  for (const auto& queued : transaction->commands) {
    words.assign(queued.words.begin(), queued.words.end());
    writes.add(id_, version_, *queued.command, words);
  }
  ++writes_pending_;
}

void RespSession::writes_answered(std::size_t commands, std::string_view answers) {
  output_ += answers;
  writes_pending_ -= commands;
  if (writes_pending_ == 0) for_writes_ = false;
}

void RespSession::writes_failed(std::size_t commands, std::string_view problem) {
  for (std::size_t i = 0; i < commands; ++i) error(problem);
  writes_answered(commands, {});
}

void RespSession::run_aside(std::function<std::string()> job) {
  aside_ = true;
  host_.run_aside(id_, std::move(job));
}

void RespSession::aside_done(std::string_view answer) {
  output_ += answer;
  aside_ = false;
}

}  // namespace kvingest::net
