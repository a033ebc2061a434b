#include "record/csv_line.hpp"

#include "record/byte_scan.hpp"

namespace kvingest {
namespace {

constexpr std::string_view kTooManyFields = "more fields than the 16384 that are allowed";
constexpr std::size_t kKeptBytes = 64 * 1024;  // What one connection may go on holding after a long line.

}  // namespace

std::string_view CsvLine::split(std::string_view line, char separator) {
  if (split_unquoted(line, separator)) return count_ > kCsvFieldsMax ? kTooManyFields : std::string_view();
  return split_quoted(line, separator);
}

// Nearly every line: no quote at all, so the separators alone cut it. False at the first quote.
bool CsvLine::split_unquoted(std::string_view line, char separator) {
  count_ = 0;
  std::size_t begin = 0;
  for (std::size_t base = 0; base < line.size() && count_ < kCsvFieldsMax; base += kScanBlockBytes) {
    const std::string_view block = line.substr(base, kScanBlockBytes);
    if (equal_mask(block, '"') != 0) return false;
    make_room(kScanBlockBytes + 1);
    for (std::uint64_t mask = equal_mask(block, separator); mask != 0; mask &= mask - 1) {
      const std::size_t at = base + static_cast<std::size_t>(std::countr_zero(mask));
      fields_[count_++] = std::string_view(line.data() + begin, at - begin);
      begin = at + 1;
    }
  }
  add(line.substr(begin));
  return true;
}

std::string_view CsvLine::split_quoted(std::string_view line, char separator) {
  count_ = 0;
  unquoted_.clear();
  if (unquoted_.capacity() > kKeptBytes) unquoted_.shrink_to_fit();
  unquoted_.reserve(line.size());  // So that the fields in it stay where they are.
  for (std::size_t at = 0;; ++at) {
    if (count_ == kCsvFieldsMax) return kTooManyFields;
    if (at < line.size() && line[at] == '"') {
      if (!quoted_field(line, at)) return "a quote is never closed";
      if (at < line.size() && line[at] != separator) {
        --count_;
        return "text behind a closing quote";
      }
    } else {
      const std::size_t end = std::min(line.find(separator, at), line.size());
      const std::string_view field = line.substr(at, end - at);
      if (field.find('"') != std::string_view::npos) return "a quote within an unquoted field";
      add(field);
      at = end;
    }
    if (at == line.size()) return {};
  }
}

bool CsvLine::quoted_field(std::string_view line, std::size_t& at) {
  const std::size_t begin = ++at;
  const std::size_t unquoted_begin = unquoted_.size();
  bool doubled = false;
  for (std::size_t from = begin;; from = at) {
    at = line.find('"', from);
    if (at == std::string_view::npos) return false;
    const bool closes = at + 1 == line.size() || line[at + 1] != '"';
    if (closes && !doubled) {
      add(line.substr(begin, at - begin));
    } else {
      unquoted_.append(line, from, at - from + (closes ? 0 : 1));
      doubled = true;
      if (closes) add(std::string_view(unquoted_).substr(unquoted_begin));
    }
    at += closes ? 1 : 2;
    if (closes) return true;
  }
}

void append_csv_field(std::string& to, std::string_view field, char separator) {
  const char special[] = {separator, '"', '\r', '\n'};
  if (field.find_first_of(std::string_view(special, sizeof special)) == std::string_view::npos) {
    to += field;
    return;
  }
  to += '"';
  for (const char c : field) to.append(c == '"' ? 2 : 1, c);
  to += '"';
}

}  // namespace kvingest
