// resp_writes.hpp -- write commands of Redis clients on their way through the committer.
//
// A worker gathers what all its clients write in one turn of its loop into one RespWrites; the committer decides the
// commands in that order, and the answers come back with it. A transaction is a row of commands in one RespWrites, and
// all of that is one batch.
//
// Threads:  the worker's until it is handed over, then the committer's, then the worker's again.
// Lifetime: the options outlive it; the words are copied into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/ingest.hpp"
#include "net/resp_command.hpp"

namespace kvingest::net {

class RespWrites final : public Changes {
 public:
  /// The answers to one client's commands in here, in their order.
  struct Answers {
    std::uint64_t client = 0;
    std::size_t commands = 0;
    std::string text;
  };

  explicit RespWrites(const RespOptions& options) : options_(options) {}

  /// Adds a command of `client`, whose words are sound. Record reads are taken, too, for transactions.
  void add(std::uint64_t client, int version, const RespCommand& command, Words words);
  /// The `commands` that are added next are a transaction: their answers are one array.
  void add_transaction(std::uint64_t client, int version, std::size_t commands);

  ChangeCounts decide(const RecordView& records, WriteBatch& batch) override;
  [[nodiscard]] std::size_t memory_bytes() const noexcept override {
    return data_.size() + words_.size() * sizeof(Piece) + commands_.size() * sizeof(Command);
  }
  [[nodiscard]] std::uint64_t puts_asked() const noexcept { return puts_asked_; }
  [[nodiscard]] bool empty() const noexcept { return commands_.empty(); }
  /// In the order of the commands; a client may be in several of them.
  [[nodiscard]] std::vector<Answers>& answers() noexcept { return answers_; }

 private:
  struct Piece {
    std::size_t offset;
    std::size_t bytes;
  };
  struct Command {
    const RespCommand* command;  // Null: a transaction begins, of so many commands as `words` says.
    std::size_t answers;         // Which of answers_.
    std::size_t first_word;
    std::size_t words;
    int version;
  };

  std::size_t answers_of(std::uint64_t client);

  const RespOptions& options_;
  std::string data_;
  std::vector<Piece> words_;
  std::vector<Command> commands_;
  std::vector<Answers> answers_;
  std::uint64_t puts_asked_ = 0;
  std::size_t transaction_left_ = 0;  // Commands of a transaction that are still to be added.
};

}  // namespace kvingest::net
