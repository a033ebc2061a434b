// kvfetch get as a process: many downloads at once.
#include "tests/http/fault_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"

namespace kvingest::test {
namespace {

TEST_CASE("kvfetch get downloads all, and what fails is named and leaves no file") {
  FaultServer server;
  TempDir dir;
  std::vector<std::string> args{program("kvfetch"), "get", "--output-dir", dir / "out",
                                "--proxy",          "",    "--json",       "--quiet"};
  for (int i = 0; i < 20; ++i) {
    const std::string path = "/file" + std::to_string(i);
    server.on(path, [path](const Seen&) { return answer(200, path + std::string(10'000, 'x')); });
    args.push_back(server.url(path + "?query"));
  }
  const Finished done = run(args);
  INFO(done.err);
  CHECK(done.exit == Exit{0});
  CHECK(file_text((dir / "out") / "file7") == "/file7" + std::string(10'000, 'x'));
  CHECK(Json::parse(done.out)["items"].size() == 20);

  const Finished failed = run({program("kvfetch"), "get", server.url("/none"), server.url("/file1"), "--output-dir",
                               dir / "out2", "--proxy", "", "--json", "--quiet"});
  CHECK(failed.exit == Exit{1});
  CHECK(Json::parse(failed.out)["items"][0]["outcome"].text() == "http_4xx");
  CHECK_FALSE(std::filesystem::exists((dir / "out2") / "none"));
  CHECK(std::filesystem::exists((dir / "out2") / "file1"));
}

TEST_CASE("kvfetch get refuses two URLs for one file, and a name that would leave the folder") {
  TempDir dir;
  const Finished twice =
      run({program("kvfetch"), "get", "http://127.0.0.1:9/a/x", "http://127.0.0.1:9/b/x", "--output-dir", dir / "o"});
  CHECK(twice.exit == Exit{2});
  CHECK_THAT(twice.err, contains_text("x"));
  FaultServer server;
  server.on("/a/..", [](const Seen&) { return answer(200, "here"); });
  server.on("/", [](const Seen&) { return answer(200, "here"); });
  CHECK(
      run({program("kvfetch"), "get", server.url("/a/.."), "--output-dir", dir / "o", "--proxy", "", "--quiet"}).exit ==
      Exit{0});
  CHECK(file_text((dir / "o") / "index.html") == "here");
}

}  // namespace
}  // namespace kvingest::test
