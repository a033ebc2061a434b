// The Debian package, looked into but not installed: `./dev package try` puts it through a whole root. The world: cpack
// on this build, into a temporary folder.
#include <fmt/format.h>

#include <set>
#include <sstream>

#include "tests/install/installed.hpp"
#include "tests/support/skip.hpp"

namespace kvingest::test {
namespace {

namespace fs = std::filesystem;

/// Makes the package of the programs in `folder` and returns its path.
fs::path make_package(const TempDir& folder) {
  const Finished made =
      run({"cpack", "--config", build_folder() / "CPackConfig.cmake", "-G", "DEB", "-B", folder.path(), "-D",
           "CPACK_COMPONENTS_ALL=programs", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none"},
          {}, std::chrono::minutes(4));
  CAPTURE(made.out, made.err);
  REQUIRE(made.exit.code == 0);
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".deb") return entry.path();
  }
  FAIL("cpack made no package");
  return {};
}

TEST_CASE("the Debian package holds the programs with all that belongs to them, and dpkg can run its scripts") {
  if (run({"sh", "-c", "command -v dpkg-shlibdeps"}).exit.code != 0) KV_SKIP("dpkg-shlibdeps is missing (dpkg-dev)");
  const TempDir folder;
  const fs::path package = make_package(folder);
  CHECK(package.filename().native().starts_with("kvingest_"));

  const fs::path files = folder / "files";
  REQUIRE(run({"dpkg-deb", "--extract", package, files}).exit.code == 0);
  std::set<std::string> wanted = {"etc/default/kvingest", "usr/lib/systemd/system/kvingest.service",
                                  "usr/share/doc/kvingest/copyright", "usr/share/doc/kvingest/security.md"};
  for (const char* const name : kInstalledPrograms) {
    wanted.insert({fmt::format("usr/bin/{}", name), fmt::format("usr/share/man/man1/{}.1", name),
                   fmt::format("usr/share/bash-completion/completions/{}", name),
                   fmt::format("usr/share/zsh/vendor-completions/_{}", name)});
  }
  for (const std::string& path : wanted) {
    CAPTURE(path);
    CHECK(fs::is_regular_file(files / path));
  }
  CHECK_FALSE(fs::exists(files / "usr/include"));
  CHECK_FALSE(fs::exists(files / "usr/local"));
  const std::string unit = file_text(files / "usr/lib/systemd/system/kvingest.service");
  CHECK_THAT(unit, contains_text("\nExecStart=/usr/bin/kvingest --quiet\n"));

  const fs::path control = folder / "control";
  REQUIRE(run({"dpkg-deb", "--control", package, control}).exit.code == 0);
  CHECK(file_text(control / "conffiles") == "/etc/default/kvingest\n");
  for (const char* const script : {"postinst", "prerm", "postrm"}) {
    CAPTURE(script);
    const auto rights = fs::status(control / script).permissions();
    CHECK((rights & fs::perms::owner_exec) != fs::perms::none);
    CHECK(run({"sh", "-n", control / script}).exit.code == 0);
  }
  const Finished depends = run({"dpkg-deb", "--field", package, "Depends"});
  for (const char* const part : {"libc6", "init-system-helpers", "tzdata"})
    CHECK_THAT(depends.out, contains_text(part));
}

TEST_CASE("the service's unit leaves it few rights, as systemd judges it") {
  if (run({"sh", "-c", "command -v systemd-analyze"}).exit.code != 0) KV_SKIP("systemd-analyze is missing (systemd)");
  const TempDir prefix;
  install_programs(prefix);
  // 2.0 of 10: what an exposed service of the distribution has is above 9.
  const Finished judged = run({"systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20",
                               prefix / "lib/systemd/system/kvingest.service"});
  CAPTURE(judged.out, judged.err);
  CHECK(judged.exit.code == 0);
}

}  // namespace
}  // namespace kvingest::test
