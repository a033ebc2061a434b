// The world: `cmake --install` of this build into a temporary folder; the programs are then run from `/`, and another
// project is built with the library.
#include <filesystem>

#include "tests/install/installed.hpp"
#include "tests/support/places.hpp"

namespace kvingest::test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("installed programs run from anywhere and carry no library path of the build tree") {
  const TempDir prefix;
  const fs::path programs = install_programs(prefix);
  for (const char* name : kInstalledPrograms) {
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
  const std::string program = install_programs(prefix) / "kvingest";
  const fs::path unit = prefix / "lib/systemd/system/kvingest.service";
  const std::string text = file_text(unit);
  CAPTURE(text);
  CHECK(text.find("\nExecStart=" + program + " --quiet\n") != std::string::npos);
  CHECK(text.find("\nType=notify\n") != std::string::npos);
  CHECK(text.find("@KVINGEST") == std::string::npos);
  if (run({"sh", "-c", "command -v systemd-analyze"}).exit.code != 0) return;
  const Finished verified = run({"systemd-analyze", "verify", unit}, {.env = {{"MANPATH", prefix / "share/man"}}});
  INFO(verified.err);
  CHECK(verified.err.find("kvingest.service:") == std::string::npos);
}

TEST_CASE("an installed kvingest finds the kvfeed beside it") {
  const TempDir prefix;
  const fs::path programs = install_programs(prefix);
  const Finished demo = run({programs / "kvingest", "--demo", "10000", "--quiet"}, {.cwd = "/"});
  INFO(demo.err);
  CHECK(demo.exit.code == 0);
  CHECK(demo.out.find("Total Messages Ingested: 10000\n") != std::string::npos);
}

TEST_CASE("a project finds the installed library, builds with it and reads back what it stored") {
  const TempDir prefix;
  install_component(prefix, "development");
  const TempDir build;
  const fs::path source = project_folder() / "examples/embed";
  const Finished configured =
      run({"cmake", "-G", "Ninja", "-S", source, "-B", build.path(), "-DCMAKE_BUILD_TYPE=Debug",
           "-DCMAKE_PREFIX_PATH=" + prefix.path().native(), "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF"});
  CAPTURE(configured.out, configured.err);
  REQUIRE(configured.exit.code == 0);
  const Finished built = run({"cmake", "--build", build.path()}, {}, std::chrono::minutes(4));
  CAPTURE(built.out, built.err);
  REQUIRE(built.exit.code == 0);
  const TempDir data;
  for (const char* engine : {"mmap", "file"}) {
    const Finished done = run({build / "embed", engine, data / engine});
    CAPTURE(engine, done.err);
    CHECK(done.exit.code == 0);
    CHECK(done.out == "AAPL/2017-12-29 169.23\nTSLA/2017-12-29 311.35\n2 records\n");
  }
  const Finished wrong = run({build / "embed", "nosuch", data / "nosuch"});
  CHECK(wrong.exit.code == 1);
  CHECK_THAT(wrong.err, contains_text("nosuch"));
}

}  // namespace
}  // namespace kvingest::test
