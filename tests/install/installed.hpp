// installed.hpp -- what the tests of an installed tree share.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {

inline constexpr std::array<const char*, 5> kInstalledPrograms = {"kvingest", "kvfeed", "kvfetch", "kvq", "kvbench"};

/// Installs a part of this build ("programs", "development") into `prefix`.
inline void install_component(const TempDir& prefix, const std::string& component) {
  const Finished installed =
      run({"cmake", "--install", build_folder(), "--prefix", prefix.path(), "--component", component});
  INFO(installed.err);
  REQUIRE(installed.exit.code == 0);
}

/// Installs the programs into `prefix` and returns their folder.
inline std::filesystem::path install_programs(const TempDir& prefix) {
  install_component(prefix, "programs");
  return prefix / "bin";
}

}  // namespace kvingest::test
