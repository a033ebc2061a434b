// The status page: the page itself, and the records behind it. The world: a kvingest of this build with --http on
// loopback, real feeds, and headless Chromium where it is installed.
#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/service.hpp"
#include "tests/support/skip.hpp"

namespace kvingest::test {
namespace {

struct Page {
  int status = 0;
  std::string head;
  std::string body;
};

Page get(const Service& service, const std::string& path, const std::string& host = "127.0.0.1:80") {
  TcpClient peer = service.connect("http");
  peer.send_all("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  const std::string all = peer.read_to_end();
  const std::size_t end = all.find("\r\n\r\n");
  REQUIRE(all.starts_with("HTTP/1.1 "));
  REQUIRE(end != std::string::npos);
  return {std::stoi(all.substr(9)), all.substr(0, end + 2), all.substr(end + 4)};
}

Json answer(const Service& service, const std::string& path) {
  const Page page = get(service, path);
  CAPTURE(path, page.body);
  REQUIRE(page.status == 200);
  return Json::parse(page.body);
}

/// The sentence with which `path` is refused.
std::string refusal(const Service& service, const std::string& path, int status = 400) {
  const Page page = get(service, path);
  CAPTURE(path, page.body);
  CHECK(page.status == status);
  return Json::parse(page.body)["error"].text();
}

Service::Options paged(const std::string& store, std::vector<std::string> args) {
  args.insert(args.end(), {"--http", "127.0.0.1:0"});
  return {.store = store, .args = std::move(args)};
}

std::vector<std::string> keys_of(const Json& list) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < list["keys"].size(); ++i) keys.push_back(list["keys"][i]["key"].text());
  return keys;
}

TEST_CASE("the page is part of the program, and may load nothing from elsewhere") {
  Service service(paged("map", {}));
  const Page page = get(service, "/");
  CHECK(page.status == 200);
  CHECK_THAT(page.head, contains_text("Content-Type: text/html; charset=utf-8\r\n"));
  CHECK_THAT(page.body, contains_text("<title>kvingest</title>"));
  for (const char* const path : {"/page.css", "/page.js", "/chart.js"}) {
    CAPTURE(path);
    CHECK_THAT(page.body, contains_text(fmt::format("\"{}\"", path)));
    const Page part = get(service, path);
    CHECK(part.status == 200);
    CHECK(part.body.find("://") == part.body.find("://www.w3.org/2000/svg"));
  }
  CHECK(page.body.find("://") == std::string::npos);
  for (const char* const path : {"/", "/status", "/keys", "/nothing-here"}) {
    const std::string head = get(service, path).head;
    CAPTURE(path, head);
    CHECK_THAT(head, contains_text("Content-Security-Policy: default-src 'none'; script-src 'self';"));
    CHECK_THAT(head, contains_text("X-Content-Type-Options: nosniff\r\n"));
    CHECK(head.find("Access-Control-Allow-Origin") == std::string::npos);
  }
  CHECK(get(service, "/nothing-here").status == 404);
  service.stop();
}

TEST_CASE("a request to loopback that names a host of somebody else is refused on every path") {
  Service service(paged("map", {}));
  for (const char* const host : {"localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "127.1.2.3", "[::1]:80"})
    CHECK(get(service, "/status", host).status == 200);
  for (const char* const path : {"/", "/status", "/keys", "/value?key=a", "/series", "/metrics"}) {
    for (const char* const host :
         {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "127.evil", "[::2]", ""}) {
      CAPTURE(path, host);
      CHECK(get(service, path, host).status == 403);
    }
  }
  service.stop();
}

TEST_CASE("keys are listed in order, page by page, each with the beginning of its value") {
  Service service(paged("lmdb", {"--format", "kv"}));
  std::string lines = "a/1=one\nb=" + std::string(1'000, 'x') + "\n";
  for (int i = 0; i < 7; ++i) lines += fmt::format("a/2{}=v{}\n", i, i);
  CHECK(service.sync(lines).number("stored") == 9);
  const Json all = answer(service, "/keys");
  CHECK(all["keys"].size() == 9);
  CHECK(all["more"].text() == "false");
  CHECK(all["keys"][0]["key"].text() == "a/1");
  CHECK(all["keys"][0]["value"].text() == "one");
  CHECK(all["keys"][8]["bytes"].number() == 1'000);
  CHECK(all["keys"][8]["cut"].text() == "true");
  CHECK(all["keys"][8]["value"].text().size() < 1'000);
  std::vector<std::string> walked;
  std::string after;
  for (int page = 0; page < 4; ++page) {
    const Json some = answer(service, "/keys?prefix=a%2F2&limit=3" + after);
    for (const std::string& key : keys_of(some)) walked.push_back(key);
    if (some["more"].text() == "false") break;
    after = "&after=" + walked.back();
  }
  CHECK(walked == std::vector<std::string>{"a/20", "a/21", "a/22", "a/23", "a/24", "a/25", "a/26"});
  CHECK(answer(service, "/keys?prefix=c")["keys"].size() == 0);
  CHECK(answer(service, "/keys?prefix=a&after=b")["keys"].size() == 0);
  service.stop();
}

TEST_CASE("keys and values of any bytes are shown as text, and found again by it") {
  Service service(paged("mmap", {"--format", "kv"}));
  const std::string key = "\x01\xFF<script>\\";
  const std::string value("tab\there\0\xC3\xA4\xC3", 12);
  CHECK(service.sync(key + "=" + value + "\n").number("stored") == 1);
  const Json row = answer(service, "/keys")["keys"][0];
  CHECK(row["key"].text() == "\\x01\\xff<script>\\\\");
  CHECK(row["value"].text() == "tab\\there\\x00\xC3\xA4\\xc3");
  const Json found = answer(service, "/value?key=%5Cx01%5Cxff%3Cscript%3E%5C%5C");
  CHECK(found["value"].text() == row["value"].text());
  CHECK(found["bytes"].number() == value.size());
  CHECK(answer(service, "/keys?prefix=%5Cx01%5Cxff")["keys"].size() == 1);
  service.stop();
}

TEST_CASE("records of arrival numbers are listed from a number") {
  Service service(paged("file", {}));
  CHECK(service.sync(numbered_lines(20, "line")).number("stored") == 20);
  const Json some = answer(service, "/keys?from=18&limit=2");
  CHECK(keys_of(some) == std::vector<std::string>{"18", "19"});
  CHECK(some["more"].text() == "true");
  CHECK(keys_of(answer(service, "/keys?after=19")) == std::vector<std::string>{"20"});
  CHECK(answer(service, "/value?key=20")["value"].text() == "line 19");
  CHECK_THAT(refusal(service, "/keys?prefix=1"), contains_text("from=NUMBER"));
  service.stop();
}

TEST_CASE("what is asked wrongly is refused with a sentence, and bounds hold whatever is asked for") {
  Service service(paged("map", {"--format", "kv"}));
  CHECK(service.sync("k=" + std::string(600'000, '\x01') + "\n").number("stored") == 1);
  CHECK_THAT(refusal(service, "/keys?limit=0"), contains_text("limit: '0'"));
  CHECK_THAT(refusal(service, "/keys?limit=501"), contains_text("1 to 500"));
  CHECK_THAT(refusal(service, "/series?limit=5001"), contains_text("1 to 5000"));
  CHECK_THAT(refusal(service, "/keys?limit=many"), contains_text("limit"));
  CHECK_THAT(refusal(service, "/keys?prefix=%5Cq"), contains_text("prefix: "));
  CHECK_THAT(refusal(service, "/keys?after=%5Cx0"), contains_text("after: "));
  CHECK_THAT(refusal(service, "/value"), contains_text("1 to 511 bytes"));
  CHECK_THAT(refusal(service, "/value?key=" + std::string(600, 'a')), contains_text("1 to 511 bytes"));
  CHECK_THAT(refusal(service, "/series?field=x"), contains_text("field: values of this store have no fields"));
  CHECK_THAT(refusal(service, "/value?key=none", 404), contains_text("no record under none"));
  CHECK(get(service, "/keys?prefix=" + std::string(20'000, 'a')).status == 414);
  const Json cut = answer(service, "/value?key=k");
  CHECK(cut["bytes"].number() == 600'000);
  CHECK(cut["cut"].text() == "true");
  CHECK(cut["value"].text().size() == 4 * (256 << 10));
  service.stop();
  Service unordered(paged("hash", {"--format", "kv"}));
  CHECK(unordered.sync("k=v\n").number("stored") == 1);
  CHECK_THAT(refusal(unordered, "/keys"), contains_text("order"));
  CHECK(answer(unordered, "/value?key=k")["value"].text() == "v");
  unordered.stop();
}

TEST_CASE("a numeric field over keys is read from json, from csv and from plain values") {
  Service json(paged("lmdb", {"--format", "json", "--key", "{symbol}/{n:03}"}));
  CHECK(
      json.sync("{\"symbol\":\"A\",\"n\":1,\"close\":1.5,\"q\":{\"x\":7}}\n{\"symbol\":\"A\",\"n\":2,\"close\":\"2\"}\n"
                "{\"symbol\":\"A\",\"n\":3,\"close\":null}\n{\"symbol\":\"B\",\"n\":1,\"close\":9}\n")
          .number("stored") == 4);
  const Json close = answer(json, "/series?prefix=A/&field=close");
  CHECK(close["points"].size() == 2);
  CHECK(close["points"][0]["key"].text() == "A/001");
  CHECK(close["points"][0]["value"].text() == "1.5");
  CHECK(close["points"][1]["value"].text() == "2");
  CHECK(close["skipped"].number() == 1);
  CHECK(answer(json, "/series?field=%2Fq%2Fx")["points"].size() == 1);
  const Json first = answer(json, "/series?field=close&limit=1");
  CHECK(first["more"].text() == "true");
  CHECK(answer(json, "/series?field=close&after=" + first["last"].text())["points"].size() == 2);
  json.stop();

  Service csv(paged("mmap", {"--format", "csv", "--header", "--key", "{s}"}));
  CHECK_THAT(refusal(csv, "/series?field=the%20price"), contains_text("before the first csv header"));
  CHECK(csv.sync("s,the price\na,10\nb,-1e3\nc,none\n").number("stored") == 3);
  const Json price = answer(csv, "/series?field=the%20price");
  CHECK(price["points"].size() == 2);
  CHECK(price["points"][1]["value"].text() == "-1000");
  CHECK(price["skipped"].number() == 1);
  CHECK_THAT(refusal(csv, "/series?field=volume"), contains_text("volume"));
  CHECK(answer(csv, "/status")["record"]["columns"][1].text() == "the price");
  csv.stop();

  Service plain(paged("map", {}));
  CHECK(plain.sync("3\nx\n4.25\ninf\n").number("stored") == 4);
  const Json values = answer(plain, "/series");
  CHECK(values["points"].size() == 2);
  CHECK(values["points"][1]["key"].text() == "3");
  CHECK(values["skipped"].number() == 2);
  plain.stop();
}

TEST_CASE("the status says how long writes and syncs took, and what the engine says of itself") {
  Service service(paged("lmdb", {}));
  CHECK(service.sync("one\n").number("stored") == 1);
  const Json status = answer(service, "/status");
  const Json& synced = status["latency"]["commit_synced"];
  CHECK(synced["count"].number() >= 1);
  const Json& bounds = synced["up_to_seconds"];
  CHECK(bounds[bounds.size() - 1][1].number() == synced["count"].number());
  CHECK(status["store_stats"].size() > 0);
  CHECK(status["record"]["seq_keys"].text() == "true");
  service.stop();
}

TEST_CASE("readers of pages who take nothing hold up neither the feed nor other readers") {
  Service service(paged("map", {"--format", "kv"}));
  CHECK(service.sync("k=" + std::string(600'000, '\x01') + "\n").number("stored") == 1);
  std::vector<TcpClient> slow;
  for (int i = 0; i < 6; ++i) {
    slow.push_back(service.connect("http"));
    slow.back().receive_buffer(4096);
    slow.back().send_all("GET /value?key=k HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_FALSE(slow.back().read_exactly(1).empty());  // The answer has begun.
  }
  CHECK(service.sync("other=1\n").number("stored") == 1);
  CHECK(answer(service, "/value?key=other")["value"].text() == "1");
  slow.clear();
  service.stop();
}

/// The page as Chromium shows it after some seconds of its own time; empty where Chromium is not installed.
std::optional<std::string> shown(const Service& service, const std::string& address) {
  if (run({"sh", "-c", "command -v chromium"}).exit.code != 0) return std::nullopt;
  const TempDir profile;
  const Finished done =
      run({"chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--no-proxy-server", "--disable-background-networking", "--disable-component-update", "--no-first-run",
           "--user-data-dir=" + profile.path().native(), "--virtual-time-budget=6000", "--dump-dom",
           "http://" + service.address("http") + "/" + address},
          {}, std::chrono::minutes(2));
  CAPTURE(done.err);
  REQUIRE(done.exit.code == 0);
  return done.out;
}

constexpr const char* kNoChromium = "Chromium is not installed (chromium)";

TEST_CASE("in a browser the page shows the figures of a feed, and no script of a key, value or source runs") {
  Service service(paged("lmdb", {"--format", "kv", "--separator", "|"}));
  const std::string attack = "<img src=x onerror=document.title='owned'>";
  TcpClient peer = service.connect();
  peer.send_all("!kv hello source=producer-7\nk/1|first\nk/2" + attack + "|" + attack + "\n!kv sync\n");
  CHECK(Answer::parse(peer.read_line().value()).word == "welcome");
  CHECK(Answer::parse(peer.read_line().value()).number("stored") == 2);
  const auto dom = shown(service, "#keys=k/&value=k/2" + attack);
  if (!dom) KV_SKIP(kNoChromium);
  CAPTURE(*dom);
  for (const char* const part :
       {"<title>kvingest</title>", ">running</p>", ">producer-7</th>", "<dt>stored</dt><dd>2</dd>",
        "a power cut now would lose 0 records", "<svg", "2 keys", ">k/1</button>",
        "&lt;img src=x onerror=document.title='owned'&gt;</pre>", "group, synced"}) {
    CAPTURE(part);
    CHECK(dom->find(part) != std::string::npos);
  }
  CHECK(dom->find("<img") == std::string::npos);
  service.stop();
}

TEST_CASE("in a browser the page draws a numeric field over keys, and says what it drew in words") {
  Service service(paged("mmap", {"--format", "csv", "--header", "--key", "{symbol}/{date}"}));
  CHECK(service.sync("symbol,date,close\nA,2024-01-02,1.5\nA,2024-01-03,2.5\nA,2024-01-04,2\nB,2024-01-02,9\n")
            .number("stored") == 4);
  const auto dom = shown(service, "#chart=A/&field=close");
  if (!dom) KV_SKIP(kNoChromium);
  CAPTURE(*dom);
  const std::string words = "close of 3 records, from 1.5 to 2.5, keys A/2024-01-02 to A/2024-01-04";
  CHECK(dom->find("aria-label=\"" + words) != std::string::npos);
  CHECK(dom->find(">" + words + "</figcaption>") != std::string::npos);
  CHECK(dom->find("<th scope=\"row\">A/2024-01-03</th><td>2.5</td>") != std::string::npos);
  CHECK(dom->find("<option value=\"close\">") != std::string::npos);
  service.stop();
}

TEST_CASE("a reader without sight finds a name for every part of the page that takes or shows something") {
  Service service(paged("map", {}));
  const std::string page = get(service, "/").body;
  CHECK_THAT(page, contains_text("<html lang=\"en\">"));
  for (const char* const part : {"<input id=\"", "role=\"region\" aria-labelledby=\"", "<section id=\""}) {
    int found = 0;
    for (std::size_t at = page.find(part); at != std::string::npos; at = page.find(part, at + 1), ++found) {
      const std::size_t begin = at + std::string_view(part).size();
      const std::string id = page.substr(begin, page.find('"', begin) - begin);
      CAPTURE(part, id);
      const bool is_input = std::string_view(part).starts_with("<input");
      const std::string name = is_input ? "<label for=\"" + id + "\"" : "id=\"" + id + "\"";
      CHECK(page.find(name) != std::string::npos);
      if (std::string_view(part).starts_with("<section"))
        CHECK(page.find("aria-labelledby=\"" + id + "-title\"") != std::string::npos);
    }
    CHECK(found > 1);
  }
  service.stop();
}

}  // namespace
}  // namespace kvingest::test
