// Downloads that break and go on: what is in the file at the end is the file, or nothing is.
#include <filesystem>

#include "tests/http/client.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {
namespace {

using http::Kind;

std::string content() {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i) + "\n";
  return text;
}

/// Serves `text` with ranges, as nginx does; each answer ends after `bytes_max` of its bytes.
struct RangeServer {
  std::string text = content();
  std::string etag = "\"v1\"";
  std::size_t bytes_max = std::string::npos;

  Reply operator()(const Seen& seen) const {
    const std::string range = seen.header("range");
    const bool holds = seen.header("if-range").empty() || seen.header("if-range") == etag;
    std::size_t first = 0;
    HeaderFields headers{{"ETag", etag}, {"Accept-Ranges", "bytes"}};
    if (!range.empty() && holds) {
      first = std::stoul(range.substr(6));
      if (first >= text.size()) return answer(416, "", {{"Content-Range", "bytes */" + std::to_string(text.size())}});
      headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" + std::to_string(text.size() - 1) +
                                                "/" + std::to_string(text.size()));
    }
    const std::string rest = text.substr(first);
    headers.emplace_back("Content-Length", std::to_string(rest.size()));
    const std::string whole_head = head(first > 0 ? 206 : 200, headers);
    if (rest.size() <= bytes_max) return {send(whole_head + rest)};
    return {send(whole_head + rest.substr(0, bytes_max)), close()};
  }
};

struct DownloadWorld {
  TempDir dir;
  FaultServer server;
  http::Session session{on_loopback()};
  std::filesystem::path file = dir / "file";

  http::Download download(http::DownloadOptions options = {}, unsigned attempts = 10) {
    return session.download(server.url("/file"), file, std::move(options), quick(attempts));
  }
  [[nodiscard]] bool has(const char* suffix) const { return std::filesystem::exists(file.native() + suffix); }
};

TEST_CASE("http download: a connection that breaks again and again costs no byte twice") {
  DownloadWorld world;
  RangeServer files{.bytes_max = 30'000};
  world.server.on("/file", files);
  std::uint64_t shown = 0;
  const auto done = world.download({.progress = [&](std::uint64_t bytes, std::uint64_t) { shown = bytes; }});
  CHECK_KIND(done.response, Kind::none);
  CHECK(file_text(world.file) == files.text);
  CHECK(done.bytes == files.text.size());
  CHECK(shown == files.text.size());
  CHECK_FALSE(world.has(".part"));
  CHECK_FALSE(world.has(".part.info"));
  const auto seen = world.server.seen();
  CHECK(seen.size() == files.text.size() / 30'000 + 1);
  CHECK(seen[1].header("range") == "bytes=30000-");
  CHECK(seen[1].header("if-range") == "\"v1\"");
  CHECK(seen[1].header("accept-encoding") == "identity");
}

TEST_CASE("http download: a later call goes on where an earlier one ended") {
  DownloadWorld world;
  RangeServer files{.bytes_max = 50'000};
  world.server.on("/file", files);
  CHECK_FALSE(world.download({}, 1).ok());
  CHECK(world.has(".part"));
  files.bytes_max = std::string::npos;
  world.server.on("/file", files);
  const auto done = world.download({}, 1);
  CHECK_KIND(done.response, Kind::none);
  CHECK(done.resumed_from == 50'000);
  CHECK(file_text(world.file) == files.text);
}

TEST_CASE("http download: a file that changed meanwhile is fetched anew, not pieced together") {
  DownloadWorld world;
  RangeServer files{.bytes_max = 50'000};
  world.server.on("/file", files);
  CHECK_FALSE(world.download({}, 1).ok());
  files = {.text = std::string(70'000, 'n'), .etag = "\"v2\""};
  world.server.on("/file", files);
  const auto done = world.download({}, 1);
  CHECK_KIND(done.response, Kind::none);
  CHECK(done.resumed_from == 0);
  CHECK(file_text(world.file) == files.text);
}

TEST_CASE("http download: a part that begins elsewhere is refused, and the next attempt takes the whole") {
  DownloadWorld world;
  RangeServer files;
  world.server.on("/file", [&](const Seen& seen) {
    if (seen.count == 1) return RangeServer{.bytes_max = 1000}(seen);
    if (!seen.header("range").empty()) {
      return answer(206, "wrong place", {{"Content-Range", "bytes 500-510/108890"}, {"ETag", "\"v1\""}});
    }
    return files(seen);
  });
  const auto done = world.download();
  CHECK_KIND(done.response, Kind::none);
  CHECK(file_text(world.file) == files.text);
}

TEST_CASE("http download: a weak ETag resumes nothing") {
  DownloadWorld world;
  RangeServer files{.etag = "W/\"v1\"", .bytes_max = 50'000};
  world.server.on("/file", files);
  CHECK_FALSE(world.download({}, 2).ok());
  for (const Seen& seen : world.server.seen()) CHECK(seen.header("range").empty());
}

TEST_CASE("http download: a part that is already all of the file is complete") {
  DownloadWorld world;
  RangeServer files;
  world.server.on("/file", files);
  write_text(world.file.native() + ".part", files.text);
  write_text(world.file.native() + ".part.info", "\"v1\"\n0\n");
  const auto done = world.download();
  CHECK_KIND(done.response, Kind::none);
  CHECK(file_text(world.file) == files.text);
}

TEST_CASE("http download: an error page is no file") {
  DownloadWorld world;
  world.server.on("/file", [](const Seen&) { return answer(404, "<html>no</html>"); });
  const auto done = world.download();
  CHECK_KIND(done.response, Kind::http_4xx);
  CHECK(done.response.body == "<html>no</html>");
  CHECK_FALSE(std::filesystem::exists(world.file));
  CHECK_FALSE(world.has(".part"));
}

TEST_CASE("http download: a file with another checksum is not kept") {
  DownloadWorld world;
  world.server.on("/file", [](const Seen&) { return answer(200, "abc"); });
  const std::string right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK_KIND(world.download({.sha256 = right}).response, Kind::none);
  CHECK(file_text(world.file) == "abc");
  std::filesystem::remove(world.file);
  std::string wrong = right;
  wrong[0] = 'c';
  CHECK_KIND(world.download({.sha256 = wrong}).response, Kind::rejected);
  CHECK_FALSE(std::filesystem::exists(world.file));
  CHECK_FALSE(world.has(".part"));
}

TEST_CASE("http download: an empty file is a file") {
  DownloadWorld world;
  world.server.on("/file", [](const Seen&) { return answer(200, ""); });
  CHECK_KIND(world.download().response, Kind::none);
  CHECK(std::filesystem::exists(world.file));
}

}  // namespace
}  // namespace kvingest::test
