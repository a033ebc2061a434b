#include "net/resp_writes.hpp"

#include "kvingest/limits.hpp"

namespace kvingest::net {
namespace {

constexpr std::size_t kFlushBytesMax = std::size_t{32} << 20;
constexpr std::size_t kMetaBytesMax = std::size_t{1} << 20;  // What the committer adds to a batch.

struct SetWords {
  bool only_new = false;       // NX
  bool only_existing = false;  // XX
  bool get = false;
  std::string problem;
};

/// Reads what stands behind SET's key and value.
SetWords read_set(Words words) {
  SetWords set;
  for (const std::string_view word : words.subspan(3)) {
    const std::string lower = lower_case(word);
    if (lower == "nx" && !set.only_existing) {
      set.only_new = true;
    } else if (lower == "xx" && !set.only_new) {
      set.only_existing = true;
    } else if (lower == "get") {
      set.get = true;
    } else if (lower == "ex" || lower == "px" || lower == "exat" || lower == "pxat" || lower == "keepttl") {
      set.problem = "ERR records do not expire by themselves here: SET takes NX, XX and GET, not " + std::string(word);
      return set;
    } else {
      set.problem = kSyntaxError;
      return set;
    }
  }
  return set;
}

std::string check_key(std::string_view key, const RespOptions& options) {
  if (!options.writes_refused.empty()) return "ERR " + options.writes_refused;
  if (key.empty()) return "ERR an empty key; a key has at least 1 byte";
  if (key.size() > kKeyBytesMax) return fmt::format("ERR a key of {} bytes; at most {}", key.size(), kKeyBytesMax);
  return {};
}

/// Numbered keys are given out by the committer alone: else an arrival could be lost under a key that was set before.
std::string check_new_key(std::string_view key, const RespOptions& options) {
  std::string problem = check_key(key, options);
  if (!problem.empty() || !options.seq_in_key.find(key)) return problem;
  return "ERR keys that hold an arrival number are made by the feed; choose another form of key";
}

void put(RespCall& call, std::string_view key, std::string_view value) {
  call.batch->put(key, value);
  ++call.counts->put;
}

/// Erases `key`, which is there.
void erase(RespCall& call, std::string_view key) {
  call.batch->erase(key);
  ++call.counts->erased;
  const SeqInKey& seq_in_key = call.options.seq_in_key;
  if (seq_in_key.is_known() && !seq_in_key.find(key)) ++call.counts->unnumbered;
}

/// Whether what `command` may add leaves the batch within its limit.
bool fits(const RespCommand& command, Words words, const WriteBatch& batch) {
  constexpr std::size_t kEntryBytesMax = 24;  // Beside key and value.
  if (command.kind != CommandKind::write) return true;
  std::size_t bytes = batch.bytes().size() + (command.run_records == run_flush ? kFlushBytesMax : 0);
  for (const std::string_view word : words) bytes += word.size() + kEntryBytesMax;
  return bytes <= kBatchBytesMax - kMetaBytesMax;
}

Result<bool> is_there(const RespCall& call, std::string_view key) {
  return call.records.get(key, [](std::string_view) {});
}

}  // namespace

std::string check_set(Words words, const RespOptions& options) {
  std::string problem = read_set(words).problem;
  return problem.empty() ? check_new_key(words[1], options) : problem;
}

std::string check_pair(Words words, const RespOptions& options) {
  return check_new_key(words[1], options);
}

std::string check_pairs(Words words, const RespOptions& options) {
  if (words.size() % 2 == 0) {
    return "ERR wrong number of arguments for '" + lower_case(words[0]) + "' command";
  }
  for (std::size_t i = 1; i < words.size(); i += 2) {
    if (std::string problem = check_new_key(words[i], options); !problem.empty()) return problem;
  }
  return {};
}

std::string check_erase(Words, const RespOptions& options) {
  return options.writes_refused.empty() ? std::string() : "ERR " + options.writes_refused;
}

std::string check_flush(Words words, const RespOptions& options) {
  const bool known =
      words.size() == 1 || (words.size() == 2 && (same_word(words[1], "sync") || same_word(words[1], "async")));
  if (!known) return std::string(kSyntaxError);
  if (!options.allow_flush) return "ERR " + lower_case(words[0]) + " is off; start kvingest with --allow-flush";
  return check_erase(words, options);
}

std::uint64_t puts_asked(const RespCommand& command, Words words) noexcept {
  if (command.run_records == run_mset) return (words.size() - 1) / 2;
  return command.run_records == run_set || command.run_records == run_setnx ? 1 : 0;
}

void run_set(RespCall& call) {
  if (call.words.size() == 3) {  // Nearly always.
    put(call, call.words[1], call.words[2]);
    return call.to.ok();
  }
  const SetWords set = read_set(call.words);
  std::string before;
  const auto found = call.records.get(call.words[1], [&](std::string_view value) {
    if (set.get) before = value;
  });
  if (!found) {
    ++call.counts->not_put;
    return call.to.error(error_text(found.error()));
  }
  const bool sets = !(set.only_new && *found) && !(set.only_existing && !*found);
  if (sets) {
    put(call, call.words[1], call.words[2]);
  } else {
    ++call.counts->not_put;
  }
  if (set.get) return *found ? call.to.bulk(before) : call.to.null();
  sets ? call.to.ok() : call.to.null();
}

void run_setnx(RespCall& call) {
  const auto found = is_there(call, call.words[1]);
  if (!found || *found) ++call.counts->not_put;
  if (!found) return call.to.error(error_text(found.error()));
  if (!*found) put(call, call.words[1], call.words[2]);
  call.to.integer(*found ? 0 : 1);
}

void run_mset(RespCall& call) {
  for (std::size_t i = 1; i < call.words.size(); i += 2) put(call, call.words[i], call.words[i + 1]);
  call.to.ok();
}

void run_del(RespCall& call) {
  std::vector<std::string_view> there;
  for (const std::string_view key : call.words.subspan(1)) {
    if (key.empty() || key.size() > kKeyBytesMax) continue;
    const auto found = is_there(call, key);
    if (!found) return call.to.error(error_text(found.error()));
    if (*found) there.push_back(key);
  }
  std::int64_t erased = 0;
  for (const std::string_view key : there) {
    const auto found = is_there(call, key);  // Not if it is named twice.
    if (!found || !*found) continue;
    erase(call, key);
    ++erased;
  }
  call.to.integer(erased);
}

/// All or nothing, so it has to fit into one batch.
void run_flush(RespCall& call) {
  std::vector<std::string> keys;
  std::size_t bytes = 0;
  const auto walked = call.records.keys([&](std::string_view key) {
    bytes += key.size() + 3;  // As the batch has an erase.
    if (bytes <= kFlushBytesMax) keys.emplace_back(key);
    return bytes <= kFlushBytesMax;
  });
  if (!walked) return call.to.error(error_text(walked.error()));
  if (bytes > kFlushBytesMax) {
    return call.to.error(
        "ERR the keys take more than the 32 MiB that one step can erase; stop kvingest and use kvq delete");
  }
  for (const std::string& key : keys) erase(call, key);
  call.to.ok();
}

std::size_t RespWrites::answers_of(std::uint64_t client) {
  if (answers_.empty() || answers_.back().client != client) answers_.push_back({.client = client});
  return answers_.size() - 1;
}

void RespWrites::add(std::uint64_t client, int version, const RespCommand& command, Words words) {
  commands_.push_back({&command, answers_of(client), words_.size(), words.size(), version});
  for (const std::string_view word : words) {
    words_.push_back({data_.size(), word.size()});
    data_ += word;
  }
  puts_asked_ += net::puts_asked(command, words);
  if (transaction_left_ > 0) {
    --transaction_left_;
  } else {
    ++answers_.back().commands;
  }
}

void RespWrites::add_transaction(std::uint64_t client, int version, std::size_t commands) {
  commands_.push_back({nullptr, answers_of(client), 0, commands, version});
  ++answers_.back().commands;
  transaction_left_ = commands;
}

ChangeCounts RespWrites::decide(const RecordView& records, WriteBatch& batch) {
  ChangeCounts counts;
  std::vector<std::string_view> words;
  for (Answers& answers : answers_) answers.text.clear();
  for (const Command& command : commands_) {
    RespWriter to(answers_[command.answers].text, command.version);
    if (command.command == nullptr) {
      to.array(command.words);
      continue;
    }
    words.clear();
    for (std::size_t i = 0; i < command.words; ++i) {
      const Piece& piece = words_[command.first_word + i];
      words.push_back(std::string_view(data_).substr(piece.offset, piece.bytes));
    }
    if (!fits(*command.command, words, batch)) {
      counts.not_put += net::puts_asked(*command.command, words);
      to.error("ERR more changes at once than one step of the store can take; send fewer");
    } else if (command.command->kind == CommandKind::read && to.text().size() > kReplyBytesMax) {
      to.error(kTooLargeReply);
    } else {
      RespCall call{words, to, records, options_, &batch, &counts};
      command.command->run_records(call);
    }
  }
  return counts;
}

}  // namespace kvingest::net
