// preset_parts.hpp -- the parts of the preset reader that are files of their own: fields, decoding, verdicts, and what
// no section can see alone.
//
// Threads: pure functions. Errors: invalid_argument, with line and key.
#pragma once

#include <string>
#include <vector>

#include "http/load/preset.hpp"
#include "http/load/toml_reader.hpp"

namespace kvingest::fetch {

Result<Outcome> parse_outcome_word(std::string_view word);
Result<void> read_rule(const toml::table& table, Rule& rule);
/// The keys of [decode], which an [[extra]] has among its own.
Result<void> read_decode_keys(TableReader& reader, const std::string& place, DecodeForm& form);
Result<void> read_decode(const toml::table& table, DecodeForm& form);
Result<void> read_fields(const toml::table& table, std::vector<Field>& fields);
/// Names that must fit one another: key columns and fields, placeholders and variables.
Result<void> check_preset(const Preset& preset);

}  // namespace kvingest::fetch
