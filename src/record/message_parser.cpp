#include "record/message_parser.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "record/field_reader.hpp"

namespace kvingest {
namespace {

constexpr std::string_view kSeqPlace = "00000000000000000000";  // The digits come when the group is written.
static_assert(kSeqPlace.size() == 20, "the digits of 2^64 - 1");

std::unique_ptr<FieldReader> make_reader(const RecordPlan& plan) {
  switch (plan.format()) {
    case MessageFormat::line:
      return make_line_reader();
    case MessageFormat::kv:
      return make_kv_reader(plan);
    case MessageFormat::csv:
      return make_csv_reader(plan);
    case MessageFormat::json:
      return make_json_reader(plan);
  }
  return nullptr;
}

bool is_unsigned_decimal(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Writes the pieces of what `from` makes at `to`, as many bytes as were measured; returns the place behind.
char* write(const TextTemplate& from, const std::vector<std::string_view>& pieces, char* to, WriteBatch& batch) {
  const std::string_view* piece = pieces.data();
  for (const TextTemplate::Part& part : from.parts()) {
    const std::string_view text = *piece++;
    if (part.kind == TextTemplate::Kind::seq) batch.number_here(to);
    if (part.width > text.size()) to = std::fill_n(to, part.width - text.size(), '0');
    to = codec::copy_short(to, text.data(), text.size());
  }
  return to;
}

bool uses_time(const RecordPlan& plan) {
  return plan.key().contains(TextTemplate::Kind::time) || plan.value().contains(TextTemplate::Kind::time);
}

}  // namespace

MessageParser::MessageParser(const RecordPlan& plan)
    : plan_(&plan),
      reader_(make_reader(plan)),
      seq_key_(plan.key().is_seq_alone()),
      uses_time_(uses_time(plan)),
      fields_(plan.fields().size()),
      key_pieces_(plan.key().parts().size()),
      value_pieces_(plan.value().parts().size()) {}
MessageParser::MessageParser(MessageParser&&) noexcept = default;
MessageParser::~MessageParser() = default;

const std::vector<std::string>& MessageParser::columns() const {
  return reader_->columns();
}
void MessageParser::set_columns(std::vector<std::string> columns) {
  reader_->set_columns(std::move(columns));
}
void MessageParser::expect_columns(std::vector<std::string> columns) {
  reader_->expect_columns(std::move(columns));
}

Verdict MessageParser::add(std::string_view message, std::uint64_t time_ns, std::string_view source,
                           WriteBatch& batch) {
  if (message.empty()) return {Outcome::blank, {}, {}};
  switch (reader_->read(message, fields_)) {
    case FieldReader::Found::fields:
      break;
    case FieldReader::Found::nothing:
      return {Outcome::blank, {}, {}};
    case FieldReader::Found::bad:
      return {Outcome::rejected, reader_->reason(), reader_->detail()};
  }
  source_ = source;
  if (uses_time_) {
    const char* const end = std::to_chars(std::begin(time_digits_), std::end(time_digits_), time_ns).ptr;
    time_ = std::string_view(time_digits_, static_cast<std::size_t>(end - time_digits_));
  }
  const bool whole = plan_->whole_message();
  std::size_t key_bytes = 0;
  std::size_t value_bytes = whole ? message.size() : 0;
  if ((!seq_key_ && !measure(plan_->key(), key_pieces_, key_bytes)) ||
      (!whole && !measure(plan_->value(), value_pieces_, value_bytes)) || !check_sizes(key_bytes, value_bytes)) {
    return {Outcome::rejected, reason_, detail_};
  }
  char* to = seq_key_ ? batch.put_next_in_place(value_bytes) : batch.put_in_place(key_bytes, value_bytes);
  if (!seq_key_) to = write(plan_->key(), key_pieces_, to, batch);
  whole ? codec::copy_short(to, message.data(), message.size()) : write(plan_->value(), value_pieces_, to, batch);
  return {Outcome::stored, {}, {}};
}

bool MessageParser::check_sizes(std::size_t key_bytes, std::size_t value_bytes) {
  if (key_bytes <= kKeyBytesMax && value_bytes <= kValueBytesMax && (key_bytes != 0 || seq_key_)) return true;
  if (value_bytes > kValueBytesMax) {
    reason_ = "value_too_long";
    detail_ = fmt::format("a value of {} bytes; at most {}", value_bytes, kValueBytesMax);
  } else {
    reason_ = key_bytes == 0 ? "key_empty" : "key_too_long";
    detail_ = fmt::format("a key of {} bytes; from 1 to {}", key_bytes, kKeyBytesMax);
  }
  return false;
}

bool MessageParser::measure(const TextTemplate& from, std::vector<std::string_view>& pieces, std::size_t& bytes) {
  std::string_view* piece = pieces.data();
  for (const TextTemplate::Part& part : from.parts()) {
    std::string_view text;
    switch (part.kind) {
      case TextTemplate::Kind::literal:
        text = part.text;
        break;
      case TextTemplate::Kind::field:
        text = fields_[part.field];
        if (text.data() == nullptr) return reject_field(part);
        if (part.width != 0 && (text.size() > part.width || !is_unsigned_decimal(text))) return reject_field(part);
        break;
      case TextTemplate::Kind::seq:
        text = kSeqPlace;
        break;
      case TextTemplate::Kind::time:
        text = time_;
        break;
      case TextTemplate::Kind::source:
        text = source_;
        break;
    }
    *piece++ = text;
    bytes += std::max(part.width, text.size());
  }
  return true;
}

bool MessageParser::reject_field(const TextTemplate::Part& part) {
  const std::string name = plan_->fields()[part.field].text();
  const bool missing = fields_[part.field].data() == nullptr;
  reason_ = missing ? "missing_field" : "bad_number";
  detail_ = missing ? fmt::format("there is no field '{}'", name)
                    : fmt::format("field '{}' is no unsigned decimal of at most {} digits", name, part.width);
  return false;
}

}  // namespace kvingest
