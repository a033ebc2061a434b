// Jobs against a server of our own, into a real store: what is done stays done, and what is not is never taken for it.
// Many are named after what users of other loaders complained about.
#include <map>
#include <thread>

#include "http/load/job_file.hpp"
#include "http/load/load_run.hpp"
#include "http/load/report.hpp"
#include "http/url.hpp"
#include "kvingest/engine.hpp"
#include "tests/http/client.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::fetch {
namespace {

using namespace std::chrono_literals;
using test::answer;
using test::contains_text;
using test::FaultServer;
using test::Reply;
using test::Seen;
using test::text_of;

/// Bars by day as csv; `more` is put in front of [decode].
std::string preset_text(const std::string& more = "", const std::string& request = "bounds = \"[)\"") {
  return R"(
preset = 1
name = "demo"
record = "bar"
[vars]
interval = { default = "1d", allowed = ["1d"] }
[request]
url = "https://demo.example/data/{symbol}"
query = { from = "{from:date}", to = "{to:date}" }
)" + request +
         "\n" + more + R"(
[[verdict]]
when = { body_is = "no such symbol" }
is = "no_such_symbol"
[[verdict]]
when = { body_is = "nothing" }
is = "empty"
[expect]
first_line = "date,close"
[decode]
format = "csv"
[fields]
date = { from = "date", as = "date", format = "%Y-%m-%d", required = true }
close = { from = "close", as = "decimal" }
[key]
columns = { "*" = ["symbol", "interval", "date"] }
duplicates = "last"
[check]
order = "asc"
provisional = "last"
restated = "close"
)";
}

std::string date_in(const Seen& seen, const char* name) {
  return http::query_value("http://h" + seen.target, name);
}

/// A row for each day of the window that was asked for.
std::string rows_for(const Seen& seen, double factor = 1) {
  std::string body = "date,close\n";
  for (Day day = *parse_day(date_in(seen, "from")); day < *parse_day(date_in(seen, "to")); ++day) {
    body += fmt::format("{},{}\n", format_day(day), (100 + static_cast<double>(day % 10)) * factor);
  }
  return body;
}

Instant wall_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct World {
  explicit World(const std::string& text = preset_text()) {
    auto parsed = parse_preset(text, {});
    REQUIRE_OK(parsed);
    preset = std::make_shared<const Preset>(*std::move(parsed));
    open();
    server.on("/data/A", [](const Seen& seen) { return answer(200, rows_for(seen)); });
    server.on("/data/B", [](const Seen& seen) { return answer(200, rows_for(seen)); });
  }

  void open() {
    store.reset();
    auto opened = open_store(*parse_store_spec("file"), {.dir = dir / "db"});
    REQUIRE_OK(opened);
    store = *std::move(opened);
  }

  LoadReport run(std::vector<std::string> symbols = {"A"}, const std::string& from = "2024-01-01",
                 const std::string& to = "2024-01-11") {
    std::vector<Job> jobs(1);
    jobs[0].preset = preset;
    jobs[0].symbols = std::move(symbols);
    jobs[0].wanted = {*parse_day(from) * kNsPerDay, *parse_day(to) * kNsPerDay};
    jobs[0].origin = server.origin();
    jobs[0].refresh = refresh;
    REQUIRE_OK(complete_variables(jobs[0]));
    StoreTarget target(*store);
    const auto plan = make_plan(jobs, target, now);
    REQUIRE_OK(plan);
    auto asking = test::on_loopback();
    asking.cache = cache;
    options.cache = cache;
    http::Session session(asking);
    auto report = run_plan(*plan, target, session, options);
    REQUIRE_OK(report);
    return *std::move(report);
  }

  [[nodiscard]] std::uint64_t count() const { return store->count().value(); }
  [[nodiscard]] std::string value(std::string_view key) const {
    std::string found;
    REQUIRE_OK(store->get(key, [&](std::string_view value) { found = value; }));
    return found;
  }

  test::TempDir dir;
  FaultServer server;
  std::unique_ptr<Store> store;
  std::shared_ptr<const Preset> preset;
  bool refresh = false;
  NotedCache* cache = nullptr;
  Instant now = *parse_day("2024-06-01") * kNsPerDay;
  LoadOptions options{.retry = test::quick_retries(3)};
};

TEST_CASE("http load: spans that are done are a set, whatever order they come in") {
  Coverage coverage;
  coverage.add({10, 20});
  coverage.add({30, 40});
  coverage.add({20, 25});
  CHECK(coverage.spans() == std::vector<Span>{{10, 25}, {30, 40}});
  CHECK(coverage.holes({0, 50}) == std::vector<Span>{{0, 10}, {25, 30}, {40, 50}});
  CHECK(coverage.holes({12, 24}).empty());
  CHECK(Coverage::decode(coverage.encode()).value().spans() == coverage.spans());
  for (const char* wrong : {"x", "1", "1/", "2/1", "1/2,", "1/2;3/4"}) {
    INFO(wrong);
    CHECK_CODE(Coverage::decode(wrong), Code::corrupt);
  }
}

TEST_CASE("http load: records are under their keys, and the store's ledger knows of them") {
  World world;
  const auto report = world.run();
  REQUIRE(report.complete());
  CHECK(report.items.at(0).outcome == Outcome::ok);
  CHECK(report.items.at(0).records == 10);
  CHECK(report.items.at(0).written.inserted == 10);
  CHECK(world.count() == 10);
  CHECK(world.value("demo/A/1d/2024-01-01") ==
        R"({"source":"demo","symbol":"A","interval":"1d","date":"2024-01-01","close":103})");
}

TEST_CASE("http load: what is done is not fetched again, and a longer span only what is missing") {
  World world;
  REQUIRE(world.run().complete());
  CHECK(world.server.seen().size() == 1);
  world.open();
  const auto again = world.run();
  CHECK(again.complete());
  CHECK(again.items.at(0).windows == 0);
  CHECK(world.server.seen().size() == 1);
  const auto longer = world.run({"A"}, "2023-12-30", "2024-01-15");
  CHECK(longer.complete());
  CHECK(world.count() == 16);
  const auto seen = world.server.seen();
  REQUIRE(seen.size() == 3);
  CHECK(date_in(seen[1], "to") == "2024-01-01");
  CHECK(date_in(seen[2], "to") == "2024-01-15");
}

TEST_CASE("http load: --refresh fetches again what is done, and writes only what is another") {
  World world;
  REQUIRE(world.run().complete());
  world.refresh = true;
  world.server.on("/data/A", [](const Seen& seen) {
    std::string body = rows_for(seen);
    body.replace(body.find("2024-01-03,"), 14, "2024-01-03,7.0");
    return answer(200, body);
  });
  const auto again = world.run();
  CHECK(again.items.at(0).written.same == 9);
  CHECK(again.items.at(0).written.changed == 1);
  CHECK_FALSE(again.items.at(0).restated);
}

TEST_CASE("http load: one bad symbol costs the others nothing, and is named with its reason") {
  World world;
  world.server.on("/data/BAD", [](const Seen&) { return answer(200, "no such symbol"); });
  const auto report = world.run({"A", "BAD", "B"});
  CHECK_FALSE(report.complete());
  CHECK(report.items.at(0).outcome == Outcome::ok);
  CHECK(report.items.at(1).outcome == Outcome::no_such_symbol);
  CHECK(report.items.at(1).message == "no such symbol");
  CHECK(report.items.at(2).outcome == Outcome::ok);
  CHECK_THAT(report_text(report), contains_text("demo BAD 1d  no_such_symbol"));
  CHECK_THAT(report_json(report), contains_text("\"outcome\":\"no_such_symbol\""));
}

TEST_CASE("http load: a closed market is empty, which is complete, and no failure") {
  World world;
  world.server.on("/data/A", [](const Seen&) { return answer(200, "nothing"); });
  CHECK(world.run().items.at(0).outcome == Outcome::empty);
  CHECK(world.run().items.at(0).windows == 0);  // Believed, and not asked again.
}

TEST_CASE("http load: a window with too few rows is asked for again, and one that stays short is named") {
  World world(preset_text() + "min_rows = 10\n");
  int asked = 0;
  world.server.on("/data/A", [&asked](const Seen& seen) {
    return ++asked < 3 ? answer(200, asked == 1 ? "nothing" : "date,close\n2024-01-01,1\n")
                       : answer(200, rows_for(seen));
  });
  const auto whole = world.run();
  CHECK(whole.items.at(0).records == 10);
  CHECK(whole.items.at(0).requests == 3);
  CHECK(whole.items.at(0).suspicious == 0);
  CHECK(world.count() == 10);
  world.server.on("/data/B", [](const Seen&) { return answer(200, "date,close\n2024-01-01,1\n"); });
  const auto less = world.run({"B"});
  CHECK(less.complete());
  CHECK(less.items.at(0).requests == 3);
  CHECK(less.items.at(0).records == 1);
  CHECK(less.items.at(0).suspicious == 1);
  CHECK_THAT(report_text(less),
             contains_text("suspicious: 1 window(s) with fewer than 10 rows, each asked for 3 times"));
}

TEST_CASE("http load: prices that turn from pounds into pence are refused until that is accepted") {
  std::string text = preset_text() + "unit = \"unit\"\n";
  text.replace(text.find("date,close"), 10, "date,close,unit");
  text.insert(text.find("[key]"), "unit = { from = \"unit\", as = \"text\" }\n");
  World world(text);
  const auto answers = [&world](const std::string& rows) {
    world.server.on("/data/A", [rows](const Seen&) { return answer(200, "date,close,unit\n" + rows); });
  };
  answers("2024-01-01,1.5,GBP\n2024-01-02,1.6,GBP\n");
  CHECK(world.run({"A"}, "2024-01-01", "2024-01-03").complete());
  answers("2024-01-03,155,GBp\n");
  const auto refused = world.run({"A"}, "2024-01-01", "2024-01-04");
  CHECK(refused.items.at(0).outcome == Outcome::bad_body);
  CHECK_THAT(refused.items.at(0).message, contains_text("unit was GBP and is GBp"));
  CHECK(world.count() == 2);
  world.options.accept_unit = true;
  CHECK(world.run({"A"}, "2024-01-01", "2024-01-04").complete());
  CHECK(world.count() == 3);
  world.options.accept_unit = false;
  answers("2024-01-04,156,GBp\n");
  CHECK(world.run({"A"}, "2024-01-01", "2024-01-05").complete());  // What was accepted is what holds.
  answers("2024-01-05,157,GBp\n2024-01-06,1.6,GBP\n");
  CHECK(world.run({"A"}, "2024-01-01", "2024-01-07").items.at(0).outcome == Outcome::bad_body);
}

TEST_CASE("http load: an error page is not recorded as a span without data") {
  World world;
  world.server.on("/data/A", [](const Seen&) {
    return answer(200, "<html>maintenance</html>", {{"Content-Type", "text/html"}});
  });
  const auto report = world.run();
  CHECK(report.items.at(0).outcome == Outcome::bad_body);
  CHECK_THAT(report.items.at(0).message, contains_text("maintenance"));
  world.server.on("/data/A", [](const Seen& seen) { return answer(200, rows_for(seen)); });
  CHECK(world.run().items.at(0).records == 10);
}

TEST_CASE("http load: a body that ends in its middle leaves no row, until it comes whole") {
  World world;
  world.server.on("/data/A", [](const Seen& seen) {
    const std::string body = rows_for(seen);
    return Reply{test::send(test::head(200) + body.substr(0, body.size() - 3)), test::close()};  // No length, no end.
  });
  CHECK(world.run().items.at(0).outcome == Outcome::truncated);
  CHECK(world.count() == 0);
  world.server.on("/data/A", [](const Seen& seen) { return answer(200, rows_for(seen)); });
  CHECK(world.run().complete());
  CHECK(world.count() == 10);
}

TEST_CASE("http load: windows are cut to what one answer holds, and a failed one alone is left") {
  World world(preset_text("[window]\nspan = { \"1d\" = \"4d\" }\n"));
  world.server.on("/data/A", [](const Seen& seen) {
    return date_in(seen, "from") == "2024-01-05" ? answer(500, "") : answer(200, rows_for(seen));
  });
  const auto report = world.run();
  CHECK(report.items.at(0).windows == 3);
  CHECK(report.items.at(0).windows_done == 2);
  CHECK(report.items.at(0).outcome == Outcome::server);
  CHECK(world.count() == 6);
  world.server.on("/data/A", [](const Seen& seen) { return answer(200, rows_for(seen)); });
  const std::size_t before = world.server.seen().size();
  CHECK(world.run().complete());
  CHECK(world.count() == 10);
  CHECK(world.server.seen().size() == before + 1);
}

TEST_CASE("http load: what a source never had is said and not asked for") {
  World world(preset_text("[window]\nlookback = { \"1d\" = \"30d\" }\n"));
  const auto report = world.run({"A"}, "2024-01-01", "2024-01-11");
  CHECK(report.items.at(0).outcome == Outcome::out_of_range);
  CHECK(world.server.seen().empty());
  const auto partly = world.run({"A"}, "2024-01-01", "2024-05-10");
  CHECK(partly.complete());
  REQUIRE(partly.items.at(0).remarks.size() == 1);
  CHECK_THAT(partly.items.at(0).remarks[0], contains_text("2024-05-03"));
}

TEST_CASE("http load: a refusal is waited for, by all that goes there") {
  World world;
  world.server.on("/data/A", [](const Seen& seen) {
    return seen.count < 3 ? answer(429, "slow down", {{"Retry-After", "0.2"}}) : answer(200, rows_for(seen));
  });
  const auto report = world.run({"A", "B"});
  CHECK(report.complete());
  CHECK(report.origins.at(0).refused >= 1);
}

TEST_CASE("http load: a day's quota holds across runs") {
  World world(preset_text("[limits]\nquota = [\"3/1d\"]\nin_flight = 1\n"));
  for (const char* symbol : {"C", "D", "E"}) {
    world.server.on("/data/" + std::string(symbol), [](const Seen& seen) { return answer(200, rows_for(seen)); });
  }
  CHECK(world.run({"A", "B"}).complete());
  world.open();
  const auto report = world.run({"C", "D", "E"});
  CHECK(world.server.seen().size() == 3);
  CHECK(report.items.at(0).outcome == Outcome::ok);
  CHECK(report.items.at(1).outcome == Outcome::quota);
  CHECK(report.items.at(2).outcome == Outcome::quota);
}

TEST_CASE("http load: a long pause that an origin asked for holds across runs") {
  World world;
  world.server.on("/data/A", [](const Seen&) { return answer(429, "", {{"Retry-After", "3000"}}); });
  CHECK(world.run().items.at(0).outcome == Outcome::rate_limited);
  CHECK(world.run({"B"}).items.at(0).outcome == Outcome::rate_limited);
  CHECK(world.server.seen().size() == 1);
}

TEST_CASE("http load: a bar of today is provisional, and fetched again by the next run") {
  World world;
  const Day today =
      day_of(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
                 .count());
  world.now = today * kNsPerDay;
  const std::string from = format_day(today - 10);
  const std::string to = format_day(today + 1);
  const auto first = world.run({"A"}, from, to);
  CHECK(first.complete());
  CHECK(first.items.at(0).oddities.provisional == 1);
  CHECK_THAT(world.value("demo/A/1d/" + format_day(today)), contains_text("\"provisional\":true"));
  const auto again = world.run({"A"}, from, to);
  CHECK(again.items.at(0).windows == 1);
  CHECK(date_in(world.server.seen().back(), "from") > from);  // Not all of it.
}

TEST_CASE("http load: a day that is not over is not settled") {
  const Instant noon = *parse_day("2024-01-11") * kNsPerDay + kNsPerDay / 2;
  CHECK(settled_until("1d", noon) == *parse_day("2024-01-10") * kNsPerDay);
  CHECK(settled_until("1h", noon) == noon - 3600 * kNsPerSecond);
}

TEST_CASE("http load: a split that rewrites history is noticed, and all of it is fetched again") {
  World world;
  REQUIRE(world.run().complete());
  world.server.on("/data/A", [](const Seen& seen) { return answer(200, rows_for(seen, 0.25)); });
  world.now = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
                  .count() +
              kNsPerDay;  // A run of another day compares a little of what is there.
  const auto longer = world.run({"A"}, "2024-01-01", "2024-01-15");
  CHECK(longer.complete());
  CHECK(longer.items.at(0).restated);
  CHECK(longer.items.at(0).windows == 2);
  CHECK(longer.items.at(0).written.changed == 10);
  CHECK_THAT(world.value("demo/A/1d/2024-01-01"), contains_text("\"close\":25.75"));
  CHECK(world.run({"A"}, "2024-01-01", "2024-01-15").items.at(0).windows == 0);
}

TEST_CASE("http load: pages by time go on behind their last row, and end where one is short") {
  World world(preset_text("[page]\nkind = \"time\"\nsize = 100\n"));
  world.server.on("/data/A", [](const Seen& seen) {
    std::string body = rows_for(seen);
    return answer(200, body);
  });
  CHECK(world.run({"A"}, "2023-01-01", "2024-01-01").complete());
  CHECK(world.count() == 365);
  CHECK(world.server.seen().size() == 4);  // Windows of a hundred days.
}

TEST_CASE("http load: a page that brings nothing new ends its item instead of going on for ever") {
  World world(preset_text("[page]\nkind = \"offset\"\nparam = \"offset\"\nsize = 2\nmax_pages = 50\n"));
  world.server.on("/data/A", [](const Seen&) { return answer(200, "date,close\n2024-01-02,1\n2024-01-03,2\n"); });
  const auto report = world.run();
  CHECK(report.items.at(0).outcome == Outcome::no_progress);
  CHECK(world.server.seen().size() == 2);
  CHECK(world.count() == 0);
}

TEST_CASE("http load: without a key that a source needs nothing is sent, and with one it is never shown") {
  World world(preset_text("[auth]\nkind = \"query\"\nname = \"apikey\"\nsecret = \"env:DEMO_KEY\"\n"));
  CHECK(world.run().items.at(0).outcome == Outcome::bad_request);
  CHECK(world.server.seen().empty());
  world.options.secrets = [](const std::string& where) -> std::optional<std::string> {
    return where == "env:DEMO_KEY" ? std::optional<std::string>("very-secret") : std::nullopt;
  };
  world.server.on("/data/A", [](const Seen& seen) { return answer(403, "bad key in " + seen.target); });
  const auto report = world.run();
  CHECK(report.items.at(0).outcome == Outcome::auth);
  CHECK_THAT(world.server.seen().at(0).target, contains_text("apikey=very-secret"));
  CHECK(report_json(report).find("very-secret") == std::string::npos);
  CHECK(report_text(report).find("very-secret") == std::string::npos);
}

TEST_CASE("http load: a run that is stopped says so, and another one goes on") {
  World world(preset_text("[window]\nspan = { \"1d\" = \"1d\" }\n[limits]\nin_flight = 1\n"));
  std::stop_source stop;
  world.server.on(
      "/data/A", [](const Seen& seen) { return seen.count == 4 ? Reply{test::stall()} : answer(200, rows_for(seen)); });
  world.options.stop = stop.get_token();
  std::thread stopper([&] {
    test::eventually([&] { return world.server.seen().size() >= 4; });
    stop.request_stop();
  });
  const auto report = world.run();
  stopper.join();
  CHECK(report.items.at(0).outcome == Outcome::cancelled);
  CHECK(report.items.at(0).windows_done == 3);
  world.options.stop = {};
  CHECK(world.run().complete());
  CHECK(world.count() == 10);
  CHECK(world.server.seen().size() == 4 + 7);
}

TEST_CASE("http load: a span that is not settled is asked about, not fetched again") {
  World world;
  NotedCache cache;
  world.cache = &cache;
  const Day today = day_of(wall_now());
  world.now = today * kNsPerDay;
  world.server.on("/data/A", [](const Seen& seen) {
    if (seen.header("if-none-match") == "\"v1\"") return Reply{test::send(test::head(304, {{"ETag", "\"v1\""}}))};
    return answer(200, rows_for(seen), {{"ETag", "\"v1\""}});
  });
  const std::string from = format_day(today);
  const std::string to = format_day(today + 1);
  CHECK(world.run({"A"}, from, to).items.at(0).unchanged == 0);
  const auto again = world.run({"A"}, from, to);
  CHECK(again.complete());
  CHECK(again.items.at(0).unchanged == 1);
  CHECK(again.items.at(0).records == 1);
  CHECK(again.items.at(0).written.same == 1);
}

TEST_CASE("http load: an answer that could not be decoded is not kept") {
  World world;
  NotedCache cache;
  world.cache = &cache;
  const Day today = day_of(wall_now());
  world.now = today * kNsPerDay;
  world.server.on("/data/A", [](const Seen& seen) {
    if (!seen.header("if-none-match").empty()) return Reply{test::send(test::head(304))};
    return answer(200, "date,close\n1/2/24,5\n", {{"ETag", "\"v1\""}});
  });
  for (int i = 0; i < 2; ++i) {
    CHECK(world.run({"A"}, format_day(today), format_day(today + 1)).items.at(0).outcome == Outcome::bad_body);
  }
  for (const Seen& seen : world.server.seen()) CHECK(seen.header("if-none-match").empty());
}

TEST_CASE("http load: requests by the year end with their year") {
  World world(preset_text("[window]\nby_year = true\n"));
  CHECK(world.run({"A"}, "2022-12-30", "2024-01-03").complete());
  CHECK(world.count() == 369);
  std::map<std::string, std::string> spans;  // They go side by side, and come in any order.
  for (const Seen& seen : world.server.seen()) spans[date_in(seen, "from")] = date_in(seen, "to");
  CHECK(spans == std::map<std::string, std::string>{
                     {"2022-12-30", "2023-01-01"}, {"2023-01-01", "2024-01-01"}, {"2024-01-01", "2024-01-03"}});
}

TEST_CASE("http load: a day that most others have and one lacks is a gap, and is told") {
  World world;
  for (const char* symbol : {"C", "D"}) {
    world.server.on("/data/" + std::string(symbol), [](const Seen& seen) { return answer(200, rows_for(seen)); });
  }
  world.server.on("/data/C", [](const Seen& seen) {
    std::string body = rows_for(seen);
    body.erase(body.find("2024-01-05"), body.find("2024-01-06") - body.find("2024-01-05"));
    return answer(200, body);
  });
  const auto report = world.run({"A", "B", "C", "D"});
  CHECK(report.items.at(0).gaps.empty());
  CHECK(report.items.at(2).gaps == std::vector<Day>{*parse_day("2024-01-05")});
  CHECK_THAT(report_text(report), contains_text("gaps 1 from 2024-01-05"));
}

TEST_CASE("http load: a file of jobs is read strictly") {
  test::TempDir dir;
  test::write_text(dir / "symbols", "# two\nA\r\n\nB\n");
  test::write_text(dir / "jobs.toml", R"([[job]]
source = "binance-klines"
symbols = ["X"]
symbols_file = "symbols"
from = 2024-01-01
to = "2024-02-01"
interval = "1h"
vars = { host = "127.0.0.1" }
)");
  const auto jobs = read_jobs(dir / "jobs.toml");
  REQUIRE_OK(jobs);
  REQUIRE(jobs->size() == 1);
  CHECK(jobs->at(0).symbols == std::vector<std::string>{"X", "A", "B"});
  const auto job = make_job(jobs->at(0), 0);
  REQUIRE_OK(job);
  CHECK(format_instant(job->wanted.from) == "2024-01-01T00:00:00Z");
  CHECK(job->vars.at("interval") == "1h");
  JobText text = jobs->at(0);
  text.interval = "7h";
  CHECK_THAT(text_of(make_job(text, 0)), contains_text("none of"));
  text = jobs->at(0);
  text.to = "2024-01-01";
  CHECK_THAT(text_of(make_job(text, 0)), contains_text("no span"));
  test::write_text(dir / "jobs.toml", "[[job]]\nsource = \"x\"\nsymbol = \"A\"\n");
  CHECK_THAT(text_of(read_jobs(dir / "jobs.toml")), contains_text("is symbols meant"));
  test::write_text(dir / "jobs.toml", "");
  CHECK_THAT(text_of(read_jobs(dir / "jobs.toml")), contains_text("[[job]]"));
}

}  // namespace
}  // namespace kvingest::fetch
