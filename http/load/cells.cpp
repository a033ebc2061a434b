#include "http/load/cells.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.hpp"
#include "record/csv_line.hpp"
#include "record/utf8.hpp"

namespace kvingest::fetch {
namespace {

BodyProblem bad(std::string text) {
  return {Outcome::bad_body, std::move(text)};
}

bool is_problem(const BodyProblem& problem) {
  return problem.outcome != Outcome::ok;
}

Cell cell_of(const JsonNode* node) {
  if (node == nullptr || !node->is_scalar()) return {};
  if (node->kind == JsonNode::Kind::null) return {Cell::Kind::null, {}};
  return {Cell::Kind::value, node->text};
}

Cell text_cell(std::string_view text) {
  return {Cell::Kind::value, text};
}

/// Whether all cells of the body have the same: what stands outside of the rows.
bool is_outside(std::string_view from) {
  return from.starts_with("@/") || from.starts_with("$/");
}

/// Where a row is, for what a field may ask besides members.
struct Place {
  std::string_view key;
  std::string_view key2;
  const JsonNode* row = nullptr;
};

Cell cell_at(const JsonTree& tree, const Place& place, std::string_view from) {
  if (from == "@key") return text_cell(place.key);
  if (from == "@key2") return text_cell(place.key2);
  if (from == "@value") return cell_of(place.row);
  if (from.starts_with('/')) return cell_of(tree.find(*place.row, from));
  return cell_of(tree.member(*place.row, from));
}

}  // namespace

BodyProblem BodyReader::parse_json() {
  if (parsed_) return json_problem_;
  parsed_ = true;
  const std::string_view text = without_bom(body_);
  switch (tree_.parse(text)) {
    case JsonTree::Parsed::whole:
      break;
    case JsonTree::Parsed::cut:
      json_problem_ = {Outcome::truncated, "the JSON ends too early: " + tree_.problem()};
      break;
    case JsonTree::Parsed::bad:
      json_problem_ = bad("no JSON: " + tree_.problem());
  }
  return json_problem_;
}

const JsonNode* BodyReader::root_of(const DecodeForm& form) {
  const JsonNode* at = tree_.root();
  std::string_view pointer = form.root;
  while (at != nullptr && !pointer.empty()) {
    const std::string_view token = pointer.substr(0, pointer.find('/', 1));
    pointer.remove_prefix(token.size());
    if (token != "/*") {
      at = tree_.find(*at, token);
      continue;
    }
    const JsonNode* only = nullptr;
    for (const JsonNode* child = tree_.first(*at); child != nullptr; child = tree_.next(*at, *child)) {
      if (std::ranges::find(form.except, child->key) != form.except.end()) continue;
      if (only != nullptr) return nullptr;
      only = child;
    }
    at = only;
  }
  return at;
}

std::string BodyReader::constant(const DecodeForm& form, std::string_view from) {
  if (form.format != DecodeForm::Format::json || is_problem(parse_json())) return {};
  const JsonNode* const base = from.starts_with('$') ? tree_.root() : root_of(form);
  const JsonNode* const node = base == nullptr ? nullptr : tree_.find(*base, from.substr(1));
  return node == nullptr || !node->is_scalar() ? std::string() : std::string(node->text);
}

BodyProblem BodyReader::read(const DecodeForm& form, std::span<const Field> fields, bool optional, RowVisitor visit) {
  if (form.format == DecodeForm::Format::csv) return read_csv(form, fields, visit);
  if (form.format == DecodeForm::Format::ndjson) return read_lines(form, fields, visit);
  if (auto problem = parse_json(); is_problem(problem)) return problem;
  const JsonNode* const root = root_of(form);
  if (root == nullptr) return optional ? BodyProblem{} : bad(fmt::format("there is nothing at {}", form.root));
  return read_json(*root, form, fields, visit);
}

// ---- CSV
// --------------------------------------------------------------------------------------------------------------

namespace {

/// Which column a field is; nothing where it has none.
std::optional<std::size_t> column_of(const Field& field, std::span<const std::string> names) {
  for (const std::string& from : field.from) {
    const auto found = std::ranges::find(names, from);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    if (names.empty()) {
      if (const auto index = parse_count(from)) return static_cast<std::size_t>(*index);
    }
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

class CsvRows {
 public:
  CsvRows(const DecodeForm& form, std::span<const Field> fields)
      : form_(form), fields_(fields), cells_(fields.size()) {}

  BodyProblem take(std::string_view line, std::size_t number, RowVisitor visit) {
    if (const std::string_view wrong = line_.split(line, form_.delimiter); !wrong.empty()) {
      return bad(fmt::format("line {}: {}", number, wrong));
    }
    const auto values = line_.fields();
    if (form_.header && !has_header_) return take_header(values);
    if (width_ == 0) width_ = values.size();
    if (form_.width != 0) width_ = form_.width;
    if (values.size() != width_) {
      return bad(fmt::format("line {}: {} fields instead of {}", number, values.size(), width_));
    }
    if (form_.layout == DecodeForm::Layout::wide) return take_wide(values, number, visit);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!form_.header && !columns_known_) columns_.push_back(column_of(fields_[i], {}));
      const auto column = columns_[i];
      cells_[i] = column && *column < values.size() ? text_cell(trimmed(values[*column])) : Cell{};
    }
    columns_known_ = true;
    return visit(cells_, number);
  }

 private:
  BodyProblem take_header(std::span<const std::string_view> values) {
    has_header_ = true;
    width_ = values.size();
    for (const std::string_view value : values) names_.emplace_back(trimmed(value));
    for (const Field& field : fields_) {
      columns_.push_back(column_of(field, names_));
      const bool of_wide = form_.layout == DecodeForm::Layout::wide;
      if (columns_.back() || field.optional || !field.of.empty() || of_wide) continue;
      return bad(fmt::format("no column {}; there are: {}", field.from.front(), fmt::join(names_, ", ")));
    }
    return {};
  }

  /// One row for each column that is no id, whose name and value the fields `@column` and `@value` take.
  BodyProblem take_wide(std::span<const std::string_view> values, std::size_t number, RowVisitor visit) {
    for (std::size_t column = 0; column < values.size(); ++column) {
      if (std::ranges::find(form_.ids, names_[column]) != form_.ids.end()) continue;
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        const std::string& from = fields_[i].from.empty() ? fields_[i].of : fields_[i].from.front();
        if (from == "@column") {
          cells_[i] = text_cell(names_[column]);
        } else if (from == "@value") {
          cells_[i] = text_cell(trimmed(values[column]));
        } else {
          cells_[i] = columns_[i] ? text_cell(trimmed(values[*columns_[i]])) : Cell{};
        }
      }
      if (auto problem = visit(cells_, number); is_problem(problem)) return problem;
    }
    return {};
  }

  const DecodeForm& form_;
  std::span<const Field> fields_;
  std::vector<Cell> cells_;
  CsvLine line_;
  std::vector<std::string> names_;
  std::vector<std::optional<std::size_t>> columns_;
  std::size_t width_ = 0;
  bool has_header_ = false;
  bool columns_known_ = false;
};

/// Passes the lines of `body` that hold something; the last one without its end only if `last_counts`.
BodyProblem each_line(std::string_view body, bool last_counts,
                      FunctionRef<BodyProblem(std::string_view line, std::size_t number)> take) {
  body = without_bom(body);
  for (std::size_t number = 1; !body.empty(); ++number) {
    const std::size_t end = body.find('\n');
    std::string_view line = body.substr(0, end);
    if (end == body.npos && !last_counts) {
      return {Outcome::truncated, fmt::format("line {} is not finished: {}", number, line.substr(0, 80))};
    }
    body.remove_prefix(end == body.npos ? body.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (auto problem = take(line, number); is_problem(problem)) return problem;
  }
  return {};
}

}  // namespace

BodyProblem BodyReader::read_csv(const DecodeForm& form, std::span<const Field> fields, RowVisitor visit) {
  CsvRows rows(form, fields);
  return each_line(body_, whole_ && !form.final_newline_required,
                   [&](std::string_view line, std::size_t number) { return rows.take(line, number, visit); });
}

// ---- JSON
// -------------------------------------------------------------------------------------------------------------

BodyProblem BodyReader::read_lines(const DecodeForm& form, std::span<const Field> fields, RowVisitor visit) {
  std::vector<Cell> cells(fields.size());
  return each_line(body_, whole_ && !form.final_newline_required, [&](std::string_view line, std::size_t number) {
    const auto parsed = tree_.parse(line);
    if (parsed != JsonTree::Parsed::whole) return bad(fmt::format("line {}: {}", number, tree_.problem()));
    const Place place{.row = tree_.root()};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      cells[i] = {};
      for (const std::string& from : fields[i].from) {
        if (cells[i] = cell_at(tree_, place, from); cells[i].kind != Cell::Kind::missing) break;
      }
    }
    return visit(cells, number);
  });
}

BodyProblem BodyReader::read_json(const JsonNode& root, const DecodeForm& form, std::span<const Field> fields,
                                  RowVisitor visit) {
  using Layout = DecodeForm::Layout;
  switch (form.layout) {
    case Layout::objects:
    case Layout::map:
      return read_objects(root, form, fields, visit);
    case Layout::rows:
      return read_rows(root, form, fields, visit);
    case Layout::columns:
      return read_columns(root, fields, visit);
    case Layout::map2:
      return read_map2(root, form, fields, visit);
    case Layout::wide:
      break;
  }
  return bad("layout wide is for csv");
}

namespace {

/// The cells that are the same in every row, and which are not.
class Cells {
 public:
  Cells(const JsonTree& tree, const JsonNode& root, std::span<const Field> fields)
      : tree_(tree), fields_(fields), cells_(fields.size()), fixed_(fields.size()) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      for (const std::string& from : fields[i].from) {
        if (!is_outside(from)) continue;
        const JsonNode& base = from.starts_with('$') ? *tree.root() : root;
        cells_[i] = cell_of(tree.find(base, std::string_view(from).substr(1)));
        fixed_[i] = true;
        if (cells_[i].kind != Cell::Kind::missing) break;
      }
    }
  }

  void fill(const Place& place) {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fixed_[i]) continue;
      cells_[i] = {};
      for (const std::string& from : fields_[i].from) {
        if (cells_[i] = cell_at(tree_, place, from); cells_[i].kind != Cell::Kind::missing) break;
      }
    }
  }
  [[nodiscard]] bool is_fixed(std::size_t i) const { return fixed_[i]; }
  [[nodiscard]] std::vector<Cell>& all() { return cells_; }

 private:
  const JsonTree& tree_;
  std::span<const Field> fields_;
  std::vector<Cell> cells_;
  std::vector<bool> fixed_;
};

}  // namespace

BodyProblem BodyReader::read_objects(const JsonNode& root, const DecodeForm& form, std::span<const Field> fields,
                                     RowVisitor visit) {
  const bool map = form.layout == DecodeForm::Layout::map;
  const auto wanted = map ? JsonNode::Kind::object : JsonNode::Kind::array;
  if (root.kind != wanted) return bad(fmt::format("{} is no {}", form.root, map ? "object" : "list"));
  Cells cells(tree_, root, fields);
  std::size_t row = 0;
  for (const JsonNode* child = tree_.first(root); child != nullptr; child = tree_.next(root, *child)) {
    if (std::ranges::find(form.except, child->key) != form.except.end() && map) continue;
    cells.fill({.key = child->key, .row = child});
    if (auto problem = visit(cells.all(), ++row); is_problem(problem)) return problem;
  }
  return {};
}

BodyProblem BodyReader::read_rows(const JsonNode& root, const DecodeForm& form, std::span<const Field> fields,
                                  RowVisitor visit) {
  if (root.kind != JsonNode::Kind::array) return bad(fmt::format("{} is no list", form.root));
  std::vector<std::string> names;
  if (!form.names.empty()) {
    const JsonNode* const list = tree_.find(*tree_.root(), form.names);
    if (list == nullptr) return bad(fmt::format("there are no names of columns at {}", form.names));
    for (const JsonNode* one = tree_.first(*list); one != nullptr; one = tree_.next(*list, *one)) {
      const JsonNode* const name = one->is_scalar() ? one : tree_.member(*one, "name");
      names.emplace_back(name == nullptr ? std::string_view() : name->text);
    }
  }
  Cells cells(tree_, root, fields);
  std::vector<std::optional<std::size_t>> columns;
  for (const Field& field : fields) {
    columns.push_back(column_of(field, names));
    if (columns.back() || field.optional || !field.of.empty() || cells.is_fixed(columns.size() - 1)) continue;
    return bad(fmt::format("no column {}; there are: {}", field.from.front(), fmt::join(names, ", ")));
  }
  std::vector<const JsonNode*> items;
  std::size_t row = 0;
  for (const JsonNode* line = tree_.first(root); line != nullptr; line = tree_.next(root, *line)) {
    ++row;
    items.clear();
    for (const JsonNode* item = tree_.first(*line); item != nullptr; item = tree_.next(*line, *item)) {
      items.push_back(item);
    }
    const std::size_t width = form.width != 0 ? form.width : names.empty() ? items.size() : names.size();
    if (line->kind != JsonNode::Kind::array || items.size() != width) {
      return bad(fmt::format("row {}: {} values instead of {}", row, items.size(), width));
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (cells.is_fixed(i)) continue;
      cells.all()[i] = columns[i] && *columns[i] < items.size() ? cell_of(items[*columns[i]]) : Cell{};
    }
    if (auto problem = visit(cells.all(), row); is_problem(problem)) return problem;
  }
  return {};
}

BodyProblem BodyReader::read_columns(const JsonNode& root, std::span<const Field> fields, RowVisitor visit) {
  Cells cells(tree_, root, fields);
  std::vector<const JsonNode*> lists(fields.size());
  std::vector<const JsonNode*> at(fields.size());
  std::size_t longest = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (cells.is_fixed(i) || !fields[i].of.empty()) continue;
    for (const std::string& from : fields[i].from) {
      if (lists[i] == nullptr) lists[i] = tree_.find(root, from);
    }
    if (lists[i] == nullptr && !fields[i].optional) return bad(fmt::format("no column {}", fields[i].from.front()));
    if (lists[i] == nullptr) continue;
    at[i] = tree_.first(*lists[i]);
    const std::size_t count = tree_.count(*lists[i]);
    if (longest != 0 && count != longest) {
      return bad(fmt::format("column {} has {} values, others {}", fields[i].from.front(), count, longest));
    }
    longest = count;
  }
  for (std::size_t row = 1; row <= longest; ++row) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (cells.is_fixed(i)) continue;
      cells.all()[i] = cell_of(at[i]);
      if (at[i] != nullptr) at[i] = tree_.next(*lists[i], *at[i]);
    }
    if (auto problem = visit(cells.all(), row); is_problem(problem)) return problem;
  }
  return {};
}

BodyProblem BodyReader::read_map2(const JsonNode& root, const DecodeForm& form, std::span<const Field> fields,
                                  RowVisitor visit) {
  if (root.kind != JsonNode::Kind::object) return bad(fmt::format("{} is no object", form.root));
  Cells cells(tree_, root, fields);
  std::size_t row = 0;
  const auto leaf = [&](const JsonNode& outer, const JsonNode& inner, const JsonNode& node) {
    cells.fill({.key = outer.key, .key2 = inner.key, .row = &node});
    return visit(cells.all(), ++row);
  };
  for (const JsonNode* outer = tree_.first(root); outer != nullptr; outer = tree_.next(root, *outer)) {
    const JsonNode* const members = tree_.find(*outer, form.inner);
    if (members == nullptr) continue;
    for (const JsonNode* inner = tree_.first(*members); inner != nullptr; inner = tree_.next(*members, *inner)) {
      if (inner->kind != JsonNode::Kind::array) {
        if (auto problem = leaf(*outer, *inner, *inner); is_problem(problem)) return problem;
        continue;
      }
      for (const JsonNode* item = tree_.first(*inner); item != nullptr; item = tree_.next(*inner, *item)) {
        if (auto problem = leaf(*outer, *inner, *item); is_problem(problem)) return problem;
      }
    }
  }
  return {};
}

}  // namespace kvingest::fetch
