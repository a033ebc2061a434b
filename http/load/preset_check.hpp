// preset_check.hpp -- proves a preset against its own examples, without a network.
//
// A preset that does not show what its source sends when all is well, when there is nothing, when the symbol is unknown
// and when it is asked too much has not been thought through, and fails.
//
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

#include "http/load/preset.hpp"

namespace kvingest::fetch {

struct PresetProof {
  std::size_t examples = 0;
  std::vector<std::string> failures;  ///< A sentence each; none: it holds.
};

[[nodiscard]] PresetProof prove(const Preset& preset);

}  // namespace kvingest::fetch
