// message_parser.hpp -- one message in, one put into a batch out. One parser for each connection.
//
// What cannot become a record is rejected with a reason, a fixed word that rejects and answers carry:
//
//   missing_field     a field that a template names is not there
//   bad_kv            kv: no separator
//   bad_csv           csv: quoting, or another number of fields than there are columns
//   header_changed    csv: the header is not what the store's columns say; the lines behind it share its fate
//   bad_json          json: not one well-formed object
//   bad_type          json: the field is null, an object or an array
//   bad_number        {name:0W}: not an unsigned decimal of at most W digits
//   key_empty         the key came out empty
//   key_too_long      ... or longer than kKeyBytesMax
//   value_too_long    the value came out longer than kValueBytesMax
//
// Threads: one thread at a time; `plan` is shared and must outlive the parser.
// Errors:  a rejected message leaves the batch as it was. No message costs an allocation once the buffers have grown.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/write_batch.hpp"
#include "record/record_plan.hpp"

namespace kvingest {

class FieldReader;

enum class Outcome : std::uint8_t {
  stored,    ///< One put was added to the batch.
  blank,     ///< Nothing to store: an empty message, a csv header.
  rejected,  ///< See the reason.
};

struct Verdict {
  Outcome outcome = Outcome::stored;
  std::string_view reason;  ///< One of the words above; empty unless rejected. Static.
  std::string_view detail;  ///< A sentence for people; valid until the parser's next call.
};

class MessageParser {
 public:
  explicit MessageParser(const RecordPlan& plan);
  MessageParser(MessageParser&&) noexcept;
  ~MessageParser();

  /// Adds the record that `message` holds to `batch`. `message` has neither its LF nor the CR before it (without_cr());
  /// `time_ns` is its arrival, since the epoch; `source` what {source} stands for.
  Verdict add(std::string_view message, std::uint64_t time_ns, std::string_view source, WriteBatch& batch);

  /// The columns in force; empty before the header was read, and for other formats than csv.
  [[nodiscard]] const std::vector<std::string>& columns() const;
  /// Puts columns that were kept with a source in force: no header is to come (the feed goes on behind it).
  void set_columns(std::vector<std::string> columns);
  /// What a header must say from now on; any other is rejected. Starts as the plan's columns.
  void expect_columns(std::vector<std::string> columns);

 private:
  /// Sets `pieces` to what the parts of `from` stand for in the message in hand and adds up their bytes.
  /// False: reason_ and detail_ say what is wrong.
  bool measure(const TextTemplate& from, std::vector<std::string_view>& pieces, std::size_t& bytes);
  bool reject_field(const TextTemplate::Part& part);
  bool check_sizes(std::size_t key_bytes, std::size_t value_bytes);

  const RecordPlan* plan_;
  std::unique_ptr<FieldReader> reader_;
  bool seq_key_;
  bool uses_time_;

  // Of the message in hand.
  std::vector<std::string_view> fields_;
  std::vector<std::string_view> key_pieces_;
  std::vector<std::string_view> value_pieces_;
  std::string_view source_;
  char time_digits_[20];
  std::string_view time_;
  std::string_view reason_;
  std::string detail_;
};

/// `line`, cut before its LF, without one CR at its end.
[[nodiscard]] inline std::string_view without_cr(std::string_view line) noexcept {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

}  // namespace kvingest
