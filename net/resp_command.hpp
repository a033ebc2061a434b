// resp_command.hpp -- the commands that are served: their names, how many words they take, and what runs them.
//
// A command is of one of three kinds. Session commands concern the connection, or the store as a whole. Record reads
// ask for single records, from the store or, inside of a transaction, as they will be when its turn comes. Record
// writes are decided by the committer.
//
// Threads: constant tables, and functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kvingest/ingest.hpp"
#include "net/resp_options.hpp"
#include "net/resp_writer.hpp"

namespace kvingest::net {

class RespSession;
struct RespCommand;

using Words = std::span<const std::string_view>;

/// One command to be run on records.
struct RespCall {
  Words words;
  RespWriter& to;
  const RecordView& records;
  const RespOptions& options;
  WriteBatch* batch = nullptr;  ///< Record writes only, as the next.
  ChangeCounts* counts = nullptr;
};

enum class CommandKind : std::uint8_t { session, read, write };

struct RespCommand {
  std::string_view name;  ///< Lower case.
  CommandKind kind;
  int arity;      ///< Words, its own name included; negative: at least so many.
  int first_key;  ///< Which words are keys, as COMMAND says it; 0: none.
  int last_key;
  int key_step;
  bool before_auth;         ///< Allowed before the client has said who it is.
  bool in_transaction;      ///< May stand between MULTI and EXEC; session commands run at once there.
  std::string_view flags;   ///< As COMMAND says them, parted by blanks.
  std::string_view group;   ///< "string", as COMMAND DOCS says it.
  std::string_view syntax;  ///< Its arguments; see resp_docs.cpp.
  std::string_view summary;
  void (*run_records)(RespCall& call);                     ///< Reads and writes.
  void (*run_session)(RespSession& session, Words words);  ///< Session commands.
  /// Writes: whether the words are sound; else the text of the error. Nothing of them is looked at in a store.
  std::string (*check)(Words words, const RespOptions& options);

  [[nodiscard]] bool takes(std::size_t words) const noexcept {
    return arity >= 0 ? words == static_cast<std::size_t>(arity) : words >= static_cast<std::size_t>(-arity);
  }
};

[[nodiscard]] std::span<const RespCommand> resp_commands() noexcept;
/// In any case; null: there is none of this name.
[[nodiscard]] const RespCommand* find_command(std::string_view name) noexcept;

/// Whether two words are the same but for case.
[[nodiscard]] bool same_word(std::string_view word, std::string_view lower) noexcept;
[[nodiscard]] std::string lower_case(std::string_view word);
/// A decimal number with nothing around it; false where it is none.
[[nodiscard]] bool parse_integer(std::string_view word, std::int64_t& value) noexcept;
/// The bytes of a key as a range names it: a decimal number where keys are arrival numbers.
[[nodiscard]] std::string range_key(std::string_view word, bool seq_keys);
/// "ERR io_error: ..." for a store that could not be read: the code is the first word.
[[nodiscard]] std::string error_text(const Error& error);
/// An answer of more is refused: it would have to be held whole.
inline constexpr std::size_t kReplyBytesMax = std::size_t{64} << 20;
inline constexpr std::string_view kTooLargeReply = "ERR the answer would take more than 64 MiB; ask for fewer records";
inline constexpr std::string_view kSyntaxError = "ERR syntax error";
inline constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";

// resp_reads.cpp: record reads.
void run_get(RespCall& call);
void run_mget(RespCall& call);
void run_exists(RespCall& call);
void run_strlen(RespCall& call);
void run_getrange(RespCall& call);
void run_type(RespCall& call);
// Session commands that need no session to answer, and so may stand in a transaction.
void run_ping(RespCall& call);
void run_echo(RespCall& call);
void run_select(RespCall& call);

// resp_writes.cpp: record writes, and what is checked of them beforehand.
void run_set(RespCall& call);
void run_setnx(RespCall& call);
void run_mset(RespCall& call);
void run_del(RespCall& call);
void run_flush(RespCall& call);
std::string check_set(Words words, const RespOptions& options);
std::string check_pair(Words words, const RespOptions& options);
std::string check_pairs(Words words, const RespOptions& options);
std::string check_erase(Words words, const RespOptions& options);
std::string check_flush(Words words, const RespOptions& options);
/// How many puts the words ask for.
[[nodiscard]] std::uint64_t puts_asked(const RespCommand& command, Words words) noexcept;

// resp_docs.cpp
void answer_command(Words words, RespWriter& to);
// resp_info.cpp
void answer_config(Words words, const RespOptions& options, RespWriter& to);

}  // namespace kvingest::net
