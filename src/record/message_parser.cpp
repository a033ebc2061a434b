#include "record/message_parser.hpp"

#include <algorithm>
#include <charconv>

#include "record/field_reader.hpp"

namespace kvingest {
namespace {

constexpr std::size_t kSeqDigits = 20;         // Of 2^64 - 1.
constexpr std::size_t kKeptBytes = 64 * 1024;  // What one connection may go on holding after a long message.

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

}  // namespace

MessageParser::MessageParser(const RecordPlan& plan)
    : plan_(&plan), reader_(make_reader(plan)), fields_(plan.fields().size()) {}
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
  time_ns_ = time_ns;
  source_ = source;
  std::string_view key;
  std::string_view value = message;
  if (!plan_->key().is_seq_alone() && !render(plan_->key(), key_, key_holes_, key)) return reject(reason_);
  if (!plan_->whole_message() && !render(plan_->value(), value_, value_holes_, value)) return reject(reason_);
  if (!check_sizes(key, value)) return reject(reason_);
  put(key, value, batch);
  return {Outcome::stored, {}, {}};
}

bool MessageParser::check_sizes(std::string_view key, std::string_view value) {
  if (key.empty() && !plan_->key().is_seq_alone()) {
    reason_ = "key_empty";
    detail_ = "the key is empty";
    return false;
  }
  if (key.size() > kKeyBytesMax) {
    reason_ = "key_too_long";
    detail_ = fmt::format("a key of {} bytes; at most {}", key.size(), kKeyBytesMax);
    return false;
  }
  if (value.size() > kValueBytesMax) {
    reason_ = "value_too_long";
    detail_ = fmt::format("a value of {} bytes; at most {}", value.size(), kValueBytesMax);
    return false;
  }
  return true;
}

void MessageParser::put(std::string_view key, std::string_view value, WriteBatch& batch) {
  if (plan_->key().is_seq_alone()) {
    value_holes_.empty() ? batch.put_next(value) : batch.put_next_with_number(value_holes_, value);
    return;
  }
  if (key_holes_.empty() && value_holes_.empty()) return batch.put(key, value);
  for (const std::uint32_t hole : value_holes_) key_holes_.push_back(static_cast<std::uint32_t>(key.size()) + hole);
  batch.put_with_number(key, key_holes_, value);
}

bool MessageParser::render(const TextTemplate& from, std::string& buffer, std::vector<std::uint32_t>& holes,
                           std::string_view& made) {
  holes.clear();
  const std::vector<TextTemplate::Part>& parts = from.parts();
  if (parts.size() == 1 && parts[0].kind == TextTemplate::Kind::field && parts[0].width == 0 &&
      fields_[parts[0].field].data() != nullptr) {
    made = fields_[parts[0].field];  // The commonest template needs no copy.
    return true;
  }
  buffer.clear();
  if (buffer.capacity() > kKeptBytes) buffer.shrink_to_fit();
  for (const TextTemplate::Part& part : parts) {
    if (!append_part(part, buffer, holes)) return false;
  }
  made = buffer;
  return true;
}

bool MessageParser::append_part(const TextTemplate::Part& part, std::string& to, std::vector<std::uint32_t>& holes) {
  switch (part.kind) {
    case TextTemplate::Kind::literal:
      to += part.text;
      return true;
    case TextTemplate::Kind::field:
      return append_field(part, to);
    case TextTemplate::Kind::seq:
      holes.push_back(static_cast<std::uint32_t>(to.size()));
      to.append(kSeqDigits, '0');
      return true;
    case TextTemplate::Kind::source:
      to += source_;
      return true;
    case TextTemplate::Kind::time: {
      char digits[kSeqDigits];
      const char* const end = std::to_chars(digits, digits + sizeof digits, time_ns_).ptr;
      const auto count = static_cast<std::size_t>(end - digits);
      if (count < part.width) to.append(part.width - count, '0');
      to.append(digits, count);
      return true;
    }
  }
  return false;
}

bool MessageParser::append_field(const TextTemplate::Part& part, std::string& to) {
  const std::string_view field = fields_[part.field];
  if (field.data() == nullptr) {
    reason_ = "missing_field";
    detail_ = fmt::format("there is no field '{}'", plan_->fields()[part.field].text());
    return false;
  }
  if (part.width != 0) {
    if (!is_unsigned_decimal(field) || field.size() > part.width) {
      reason_ = "bad_number";
      detail_ = fmt::format("field '{}' is no unsigned decimal of at most {} digits",
                            plan_->fields()[part.field].text(), part.width);
      return false;
    }
    to.append(part.width - field.size(), '0');
  }
  to += field;
  return true;
}

}  // namespace kvingest
