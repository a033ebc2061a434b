// The world: `cmake --install` of this build into a temporary folder; the programs are then run from `/`.
#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {
namespace {

namespace fs = std::filesystem;

/// Installs into `prefix` and returns the folder of the programs.
fs::path install(const TempDir& prefix) {
  const Finished installed = run({"cmake", "--install", build_folder(), "--prefix", prefix.path()});
  INFO(installed.err);
  REQUIRE(installed.exit.code == 0);
  return prefix / "bin";
}

TEST_CASE("installed programs run from anywhere and carry no library path of the build tree") {
  const TempDir prefix;
  const fs::path programs = install(prefix);
  for (const char* name : {"kvingest", "kvfeed", "kvfetch", "kvq", "kvbench"}) {
    const std::string program = programs / name;
    INFO(program);
    const Finished version = run({program, "--version"}, {.cwd = "/"});
    CHECK(version.exit.code == 0);
    CHECK_FALSE(version.out.empty());
    const Finished dynamic = run({"readelf", "-d", program});
    REQUIRE(dynamic.exit.code == 0);
    CHECK(dynamic.out.find("NEEDED") != std::string::npos);
    CHECK(dynamic.out.find("RPATH") == std::string::npos);
    CHECK(dynamic.out.find("RUNPATH") == std::string::npos);
  }
}

TEST_CASE("a unit for systemd is installed that starts the installed kvingest") {
  const TempDir prefix;
  const std::string program = install(prefix) / "kvingest";
  const fs::path unit = prefix / "lib/systemd/system/kvingest.service";
  const std::string text = file_text(unit);
  CAPTURE(text);
  CHECK(text.find("\nExecStart=" + program + " --quiet\n") != std::string::npos);
  CHECK(text.find("\nType=notify\n") != std::string::npos);
  CHECK(text.find('@') == std::string::npos);
  if (run({"sh", "-c", "command -v systemd-analyze"}).exit.code != 0) return;
  const Finished verified = run({"systemd-analyze", "verify", unit});
  INFO(verified.err);
  CHECK(verified.err.find("kvingest.service:") == std::string::npos);
}

TEST_CASE("an installed kvingest finds the kvfeed beside it") {
  const TempDir prefix;
  const fs::path programs = install(prefix);
  const Finished demo = run({programs / "kvingest", "--demo", "10000", "--quiet"}, {.cwd = "/"});
  INFO(demo.err);
  CHECK(demo.exit.code == 0);
  CHECK(demo.out.find("Total Messages Ingested: 10000\n") != std::string::npos);
}

}  // namespace
}  // namespace kvingest::test
