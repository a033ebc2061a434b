// cells.hpp -- the rows of a body, whatever its layout, as cells in the order of a preset's fields.
//
// Threads:  one.
// Lifetime: cells point into the body and the reader; they live until the next row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/load/json_tree.hpp"
#include "http/load/outcome.hpp"
#include "http/load/preset.hpp"
#include "kvingest/function_ref.hpp"

namespace kvingest::fetch {

struct Cell {
  enum class Kind : std::uint8_t { missing, null, value };
  Kind kind = Kind::missing;
  std::string_view text;
};

/// Why a body, or a row of it, could not be read.
struct BodyProblem {
  Outcome outcome = Outcome::ok;  ///< ok: none.
  std::string text;
};

/// One row: its cells, and where it is, for messages ("line 7"). A problem ends the walk.
using RowVisitor = FunctionRef<BodyProblem(std::span<const Cell> cells, std::size_t row)>;

class BodyReader {
 public:
  /// `whole`: the transfer has shown that the body is complete.
  BodyReader(std::string_view body, bool whole) : body_(body), whole_(whole) {}

  /// Passes the rows of one set of records. A root that is not there is a problem unless `optional`.
  BodyProblem read(const DecodeForm& form, std::span<const Field> fields, bool optional, RowVisitor visit);

  /// A text that the body has once, by "@/pointer" (from the root of `form`) or "$/pointer" (from the whole); empty
  /// where there is none.
  [[nodiscard]] std::string constant(const DecodeForm& form, std::string_view from);

 private:
  BodyProblem parse_json();
  const JsonNode* root_of(const DecodeForm& form);
  BodyProblem read_csv(const DecodeForm& form, std::span<const Field> fields, RowVisitor visit);
  BodyProblem read_lines(const DecodeForm& form, std::span<const Field> fields, RowVisitor visit);
  BodyProblem read_json(const JsonNode& root, const DecodeForm& form, std::span<const Field> fields, RowVisitor visit);
  BodyProblem read_objects(const JsonNode& root, const DecodeForm& form, std::span<const Field> fields,
                           RowVisitor visit);
  BodyProblem read_rows(const JsonNode& root, const DecodeForm& form, std::span<const Field> fields, RowVisitor visit);
  BodyProblem read_columns(const JsonNode& root, std::span<const Field> fields, RowVisitor visit);
  BodyProblem read_map2(const JsonNode& root, const DecodeForm& form, std::span<const Field> fields, RowVisitor visit);

  std::string_view body_;
  bool whole_;
  bool parsed_ = false;
  BodyProblem json_problem_;
  JsonTree tree_;
};

}  // namespace kvingest::fetch
