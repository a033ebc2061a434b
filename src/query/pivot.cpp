#include "query/pivot.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <queue>

#include "base/json_writer.hpp"
#include "query/wide_output.hpp"
#include "record/field_reader.hpp"

namespace kvingest::query {
namespace {

constexpr std::size_t kColumnsMax = 100'000;
constexpr std::size_t kRunsMax = 100'000;
constexpr std::size_t kRunRows = 64;  // What is held of a run at once.

/// The three fields of a record.
struct Triple {
  std::string_view row;
  std::string_view column;
  std::string_view value;
};

class TripleReader {
 public:
  static Result<std::unique_ptr<TripleReader>> make(const OpenedStore& opened, const PivotPlan& plan) {
    auto options = record_options_of(opened.marker);
    KV_TRY(options);
    if (!opened.labels.whole_message || (opened.labels.format != "json" && opened.labels.format != "csv")) {
      return fail(Code::invalid_argument, "pivot reads stores of json and csv messages; this one keeps {}",
                  opened.labels.format.empty() ? "what its marker does not say" : opened.labels.format);
    }
    options->key = "k";
    options->value = named(plan.rows) + named(plan.columns) + named(plan.values);
    auto compiled = RecordPlan::compile(*options);
    KV_TRY(compiled);
    return std::unique_ptr<TripleReader>(new TripleReader(*std::move(compiled)));
  }

  /// False: the record has not all three.
  bool read(std::string_view message, Triple& to) {
    if (message.empty() || reader_->read(message, fields_) != FieldReader::Found::fields) return false;
    const auto& parts = plan_.value().parts();
    to = {fields_[parts[0].field], fields_[parts[1].field], fields_[parts[2].field]};
    // What a record does not have is a view of nothing.
    return to.row.data() != nullptr && to.column.data() != nullptr && to.value.data() != nullptr;
  }

 private:
  explicit TripleReader(RecordPlan plan)
      : plan_(std::move(plan)),
        reader_(plan_.format() == MessageFormat::json ? make_json_reader(plan_) : make_csv_reader(plan_)),
        fields_(plan_.fields().size()) {}

  static std::string named(const std::string& field) {
    if (field.starts_with('/')) return "{" + field + "}";
    std::string quoted;
    for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return "{\"" + quoted + "\"}";
  }

  RecordPlan plan_;
  std::unique_ptr<FieldReader> reader_;
  std::vector<std::string_view> fields_;
};

/// Records next to one another whose row values do not fall.
struct Run {
  std::string first;
  std::string last;
};

/// What the first walk finds.
struct Survey {
  std::vector<Run> runs;
  std::map<std::string, std::size_t, std::less<>> columns;  // Name and width of its widest value.
  std::size_t row_width = 0;
  std::uint64_t records = 0;
  std::uint64_t read = 0;
};

Result<Survey> survey(const OpenedStore& opened, const Selection& selection, TripleReader& reader) {
  Survey found;
  std::string row;
  Triple triple;
  const auto visit = [&](std::string_view key, std::string_view value) {
    ++found.records;
    if (!reader.read(value, triple)) return;
    ++found.read;
    if (found.runs.empty() || triple.row < row) found.runs.push_back({std::string(key), {}});
    found.runs.back().last = key;
    row = triple.row;
    found.row_width = std::max(found.row_width, triple.row.size());
    auto column = found.columns.find(triple.column);
    if (column == found.columns.end()) column = found.columns.emplace(triple.column, triple.column.size()).first;
    column->second = std::max(column->second, triple.value.size());
  };
  const auto between = [&]() -> Result<bool> {
    if (found.columns.size() > kColumnsMax) return fail(Code::too_large, "pivot: more than {} columns", kColumnsMax);
    if (found.runs.size() <= kRunsMax) return true;
    return fail(Code::too_large, "pivot: the keys of this store do not go along with its rows ({} runs)", kRunsMax);
  };
  KV_TRY(walk_pages(*opened.store, Space::records, selection, visit, between));
  return found;
}

/// Walks one run, a few records at a time.
class Cursor {
 public:
  Cursor(const Store& store, const Run& run, std::size_t index)
      : store_(&store), next_(run.first), last_(run.last + '\0'), index_(index) {}

  /// Moves to the next record. False at the end.
  Result<bool> advance(TripleReader& reader) {
    if (++at_ < held_.size()) return true;
    held_.clear();
    at_ = 0;
    while (held_.empty() && next_ < last_) {
      std::size_t seen = 0;
      const Range range{.first = next_, .last = last_, .limit = kRunRows};
      Triple triple;
      std::string reached;
      const auto rows = store_->scan(Space::records, range, [&](std::string_view key, std::string_view value) {
        ++seen;
        reached = key;
        if (reader.read(value, triple))
          held_.push_back({std::string(triple.row), std::string(triple.column), std::string(triple.value)});
        return true;
      });
      KV_TRY(rows);
      next_ = seen < kRunRows ? last_ : reached + '\0';
    }
    return !held_.empty();
  }

  [[nodiscard]] const std::string& row() const { return held_[at_].row; }
  [[nodiscard]] const std::string& column() const { return held_[at_].column; }
  [[nodiscard]] const std::string& value() const { return held_[at_].value; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }

 private:
  struct Held {
    std::string row;
    std::string column;
    std::string value;
  };
  const Store* store_;
  std::string next_;
  std::string last_;
  std::size_t index_;
  std::vector<Held> held_;
  std::size_t at_ = 0;
};

/// One cell while its records come.
struct Cell {
  std::uint64_t count = 0;
  double sum = 0;
  double extreme = 0;
  std::string text;
};

Result<void> add(Cell& cell, Aggregate aggregate, const std::string& value) {
  ++cell.count;
  if (aggregate == Aggregate::count) return {};
  if (aggregate == Aggregate::last || aggregate == Aggregate::first) {
    if (aggregate == Aggregate::last || cell.count == 1) cell.text = value;
    return {};
  }
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) {
    return fail(Code::invalid_argument, "pivot: '{}' is no number", value.substr(0, 60));
  }
  cell.sum += number;
  const bool first = cell.count == 1;
  if (first || (aggregate == Aggregate::min ? number < cell.extreme : number > cell.extreme)) {
    cell.extreme = number;
    cell.text = value;  // As it was written.
  }
  return {};
}

std::string text_of(const Cell& cell, Aggregate aggregate) {
  if (cell.count == 0) return {};
  switch (aggregate) {
    case Aggregate::count:
      return std::to_string(cell.count);
    case Aggregate::sum:
      return fmt::format("{}", cell.sum);
    case Aggregate::mean:
      return fmt::format("{}", cell.sum / static_cast<double>(cell.count));
    default:
      return cell.text;
  }
}

bool is_computed(Aggregate aggregate) {
  return aggregate == Aggregate::sum || aggregate == Aggregate::mean;
}

class Merge {
 public:
  Merge(const OpenedStore& opened, const PivotPlan& plan, const Survey& survey, TripleReader& reader)
      : plan_(plan), reader_(reader), cells_(survey.columns.size()) {
    for (const auto& [name, width] : survey.columns) columns_.emplace(name, columns_.size());
    for (const Run& run : survey.runs) cursors_.emplace_back(*opened.store, run, cursors_.size());
  }

  Result<void> run(WideOutput& table, Output& out) {
    for (Cursor& cursor : cursors_) KV_TRY(push(cursor));
    std::vector<std::string> texts(cells_.size());
    while (!heap_.empty() && out.is_wanted()) {
      const std::string row = heap_.top()->row();
      while (!heap_.empty() && heap_.top()->row() == row) {
        Cursor& cursor = *heap_.top();
        heap_.pop();
        const auto column = columns_.find(cursor.column());
        // What a feed has added since the first walk is for the next look.
        if (column != columns_.end()) KV_TRY(add(cells_[column->second], plan_.aggregate, cursor.value()));
        KV_TRY(push(cursor));
      }
      for (std::size_t i = 0; i < cells_.size(); ++i) texts[i] = text_of(cells_[i], plan_.aggregate);
      table.row(out.text(), row, texts);
      KV_TRY(out.flush_some());
      std::ranges::fill(cells_, Cell{});
    }
    return {};
  }

 private:
  struct Later {
    // Of the same row, the earlier run first: so records of a cell come in key order.
    bool operator()(const Cursor* a, const Cursor* b) const {
      return std::pair(std::string_view(a->row()), a->index()) > std::pair(std::string_view(b->row()), b->index());
    }
  };

  Result<void> push(Cursor& cursor) {
    const auto more = cursor.advance(reader_);
    KV_TRY(more);
    if (*more) heap_.push(&cursor);
    return {};
  }

  const PivotPlan& plan_;
  TripleReader& reader_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<Cell> cells_;
  std::vector<Cursor> cursors_;
  std::priority_queue<Cursor*, std::vector<Cursor*>, Later> heap_;
};

}  // namespace

Result<Aggregate> parse_aggregate(std::string_view text) {
  constexpr std::string_view kNames[] = {"last", "first", "sum", "mean", "min", "max", "count"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == text) return static_cast<Aggregate>(i);
  }
  return fail(Code::invalid_argument, "no aggregate '{}'; there are {}", text, fmt::join(kNames, ", "));
}

Result<WideForm> parse_wide_form(std::string_view text) {
  if (text == "csv") return WideForm::csv;
  if (text == "json") return WideForm::json;
  if (text == "table") return WideForm::table;
  return fail(Code::invalid_argument, "no format '{}'; there are csv, json and table", text);
}

Result<void> pivot(const OpenedStore& opened, const Selection& selection, const PivotPlan& plan, Output& out) {
  auto reader = TripleReader::make(opened, plan);
  KV_TRY(reader);
  const auto found = survey(opened, selection, **reader);
  KV_TRY(found);
  if (found->read == 0 && found->records > 0) {
    return fail(Code::invalid_argument, "none of {} records has {}, {} and {}", found->records, plan.rows, plan.columns,
                plan.values);
  }
  std::vector<WideOutput::Column> columns;
  constexpr std::size_t kComputedWidth = 16;
  for (const auto& [name, width] : found->columns) {
    columns.push_back({name, is_computed(plan.aggregate) ? std::max(width, kComputedWidth) : width});
  }
  WideOutput table(plan.form, plan.rows, std::max(found->row_width, plan.rows.size()), std::move(columns));
  table.begin(out.text());
  KV_TRY(Merge(opened, plan, *found, **reader).run(table, out));
  table.end(out.text());
  return out.flush();
}

}  // namespace kvingest::query
