// Validators: what was kept is asked about, not fetched again.
#include <map>

#include "tests/http/client.hpp"

namespace kvingest::test {
namespace {

struct MapCache : http::Cache {
  std::optional<http::CacheEntry> get(std::string_view key) override {
    const auto found = entries.find(std::string(key));
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }
  void put(std::string_view key, const http::CacheEntry& entry) override { entries[std::string(key)] = entry; }
  std::map<std::string, http::CacheEntry> entries;
};

struct CacheWorld {
  FaultServer server;
  MapCache cache;
  http::Session session{[this] {
    auto options = on_loopback();
    options.cache = &cache;
    return options;
  }()};

  http::Response get(const std::string& path) {
    http::Request request = quick();
    request.cache = true;
    request.auth = {.kind = http::Auth::Kind::query, .name = "key", .secret = http::Secret("top-secret")};
    return session.get(server.url(path), std::move(request));
  }
};

TEST_CASE("http cache: an answer with an ETag is asked about and given from what was kept") {
  CacheWorld world;
  world.server.on("/page", [](const Seen& seen) {
    if (seen.header("if-none-match") == "\"v1\"") return Reply{send(head(304, {{"ETag", "\"v1\""}}))};
    return answer(200, "the page", {{"ETag", "\"v1\""}, {"Content-Type", "text/csv"}});
  });
  CHECK_FALSE(world.get("/page").from_cache);
  const auto second = world.get("/page");
  CHECK(second.ok());
  CHECK(second.from_cache);
  CHECK(second.status == 200);
  CHECK(second.body == "the page");
  CHECK(second.header("content-type") == "text/csv");
  REQUIRE(world.cache.entries.size() == 1);
  CHECK(world.cache.entries.begin()->first.find("top-secret") == std::string::npos);
}

TEST_CASE("http cache: Last-Modified does where there is no ETag, and a new answer replaces the old one") {
  CacheWorld world;
  const std::string first = "Mon, 01 Jan 2024 00:00:00 GMT";
  world.server.on("/page", [&](const Seen& seen) {
    if (seen.header("if-modified-since") == first) return answer(200, "second", {{"Last-Modified", first + " "}});
    return answer(200, "first", {{"Last-Modified", first}});
  });
  CHECK(world.get("/page").body == "first");
  CHECK(world.get("/page").body == "second");
  CHECK(world.cache.entries.begin()->second.body == "second");
}

TEST_CASE("http cache: what failed or may not be kept is not kept") {
  CacheWorld world;
  world.server.on("/fails", [](const Seen&) { return answer(404, "x", {{"ETag", "\"a\""}}); });
  world.server.on("/private", [](const Seen&) {
    return answer(200, "x", {{"ETag", "\"a\""}, {"Cache-Control", "private, no-store"}});
  });
  world.server.on("/plain", [](const Seen&) { return answer(200, "x"); });
  for (const char* path : {"/fails", "/private", "/plain"}) static_cast<void>(world.get(path));
  CHECK(world.cache.entries.empty());
}

}  // namespace
}  // namespace kvingest::test
