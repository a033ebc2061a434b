// resp_session.hpp -- the protocol of one Redis client, without its socket.
//
// Requests are taken in order and answered in order. A write is handed to the committer and its answer comes back
// later; what is no write waits until then, so that a client reads what it wrote, and answers need no sorting. The same
// holds for what runs aside (a count of the whole store) and for KV.TAIL, which waits for records.
//
// Threads:  one worker's. Lifetime: the host outlives it.
// Errors:   a mistake is an answer. A request that breaks the protocol is answered, and ended() is true from then on.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp_command.hpp"
#include "net/resp_parser.hpp"
#include "net/resp_scan.hpp"
#include "net/resp_writes.hpp"

namespace kvingest::net {

/// A worker, as its sessions see it.
class RespHost {
 public:
  virtual ~RespHost() = default;
  [[nodiscard]] virtual const RespOptions& options() const noexcept = 0;
  [[nodiscard]] virtual ParcelSink& sink() noexcept = 0;
  [[nodiscard]] virtual ScanCursors& cursors() noexcept = 0;
  /// Where writes gather that are handed over at the end of this turn.
  [[nodiscard]] virtual RespWrites& writes() = 0;
  /// The committer takes more. After a no the sessions are told when it does.
  [[nodiscard]] virtual bool has_room() = 0;
  /// Runs `job` on another thread, and gives what it returns to aside_done() of the session.
  virtual void run_aside(std::uint64_t session, std::function<std::string()> job) = 0;
};

class RespSession {
 public:
  /// An answer of more is sent before the next request is taken.
  static constexpr std::size_t kOutputBytesMax = std::size_t{256} << 10;

  RespSession(RespHost& host, std::uint64_t id, std::string peer, bool local);
  RespSession(const RespSession&) = delete;
  RespSession& operator=(const RespSession&) = delete;

  /// Takes the requests at the front of `input`, which has all that came and was not taken before; returns how many
  /// bytes were taken. The rest is incomplete, or has to wait.
  std::size_t take(std::string_view input);

  /// Nothing can be taken until something comes from elsewhere.
  [[nodiscard]] bool waits() const noexcept { return aside_ || tail_ || for_writes_ || for_room_; }
  /// Something of this client is under way and will come back.
  [[nodiscard]] bool settled() const noexcept { return writes_pending_ == 0 && !aside_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  void end() noexcept {
    ended_ = true;
    tail_.reset();
    transaction_.reset();
  }
  [[nodiscard]] std::string& output() noexcept { return output_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

  /// So many of its writes are decided: `answers` are theirs.
  void writes_answered(std::size_t commands, std::string_view answers);
  /// So many will not be: `problem` is the answer to each.
  void writes_failed(std::size_t commands, std::string_view problem);
  void aside_done(std::string_view answer);
  void room() noexcept { for_room_ = false; }

  /// KV.TAIL waits: until when, if not for ever.
  [[nodiscard]] bool tails() const noexcept { return tail_ != nullptr; }
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> tail_until() const noexcept;
  /// Looks for new records; at its end the wait is answered with nothing.
  void tail_again(std::chrono::steady_clock::time_point now);

  // For the commands, which are in resp_session_commands.cpp and resp_store_commands.cpp.
  [[nodiscard]] RespWriter reply() { return {output_, version_}; }
  [[nodiscard]] RespHost& host() noexcept { return host_; }
  void error(std::string_view text) { reply().error(text); }
  void run_aside(std::function<std::string()> job);
  void hello(Words words);
  void client(Words words);
  void multi();
  void exec();
  void discard();
  void auth(Words words);
  void quit();
  void reset();
  void tail(Words words);
  void admin(Words words);

 private:
  struct Transaction {
    struct Command {
      const RespCommand* command;
      std::vector<std::string> words;
    };
    std::vector<Command> commands;
    std::size_t bytes = 0;
    bool broken = false;  // A command was refused: EXEC will be, too.
  };
  struct Tail {
    std::uint64_t seq = 0;  // The last number that was seen.
    std::size_t count = 0;
    std::optional<std::chrono::steady_clock::time_point> until;
  };

  bool execute(Words words);
  bool execute_write(const RespCommand& command, Words words);
  void execute_read(const RespCommand& command, Words words);
  void queue(const RespCommand& command, Words words);
  void refuse(std::string_view problem);
  void let_in(TokenOwner owner);
  bool log_in(Words words);
  [[nodiscard]] std::string problem_of(const RespCommand* command, Words words) const;
  bool answer_tail(Tail& tail);
  [[nodiscard]] std::string client_line() const;

  RespHost& host_;
  const std::uint64_t id_;
  const std::string peer_;
  const bool local_;  // Through control.sock.
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  RespParser parser_;
  std::string output_;
  std::string name_;
  std::string last_command_;
  std::optional<TokenOwner> owner_;  // Nothing: the client has not said who it is.
  int version_ = 2;
  std::unique_ptr<Transaction> transaction_;
  std::unique_ptr<Tail> tail_;
  std::size_t writes_pending_ = 0;  // Commands that are handed over.
  bool for_writes_ = false;         // The next request waits for them.
  bool for_room_ = false;
  bool aside_ = false;
  bool ended_ = false;
};

}  // namespace kvingest::net
