// Mistakes and missing means, end to end: the exit code, and one clear message that says what to do.
//
// World: kvingest and kvq of this build, started with what cannot work.
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

constexpr uid_t kNobody = 65534;

std::vector<std::string> listen_anywhere(std::vector<std::string> args) {
  args.insert(args.end(), {"--listen", "127.0.0.1:0"});
  return args;
}

TEST_CASE("an unknown store is told from one that is not in this build, and the nearest name is offered") {
  TempDir temp;
  const Finished unknown = run_kvingest(listen_anywhere({"--store", "rockdb", "--dir", (temp / "db").native()}));
  check_refused(unknown, 2, "rocksdb");
  check_refused(unknown, 2, "no such store");
  CHECK_FALSE(std::filesystem::exists(temp / "db"));
  for (const Engine* engine : engines()) {
    if (engine->missing.empty()) continue;
    check_refused(run_kvingest(listen_anywhere({"--store", std::string(engine->name)})), 2, "not in this build");
  }
}

TEST_CASE("all stores are listed, with the reason where one is missing") {
  const Finished listed = run_kvingest({"--list-stores"});
  CHECK(listed.exit.code == 0);
  for (const Engine* engine : engines()) {
    CHECK(listed.out.find(engine->name) != std::string::npos);
    CHECK(listed.out.find(engine->missing.empty() ? engine->summary : engine->missing) != std::string::npos);
  }
}

ENGINE_SCENARIO(anything, "an unknown option of a store is a usage error that lists the known ones") {
  const Finished refused =
      run_kvingest(listen_anywhere({"--store", store_name(subject) + ",nonsense=1", "--dir", subject.dir().native()}));
  check_refused(refused, 2, "nonsense");
  for (const EngineOption& option : subject.engine().options) check_refused(refused, 2, option.name);
  CHECK_FALSE(std::filesystem::exists(subject.dir()));
}

TEST_CASE("a value that an option of a store cannot have is a usage error, and nothing is made") {
  TempDir temp;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"mmap", "segment=1"},  {"mmap", "write=twice"},      {"file", "slot=100"},     {"lmdb", "map=abc"},
      {"lmdb", "bulk=maybe"}, {"rocksdb", "compression=x"}, {"rocksdb", "cache=lots"}};
  for (const auto& [store, option] : cases) {
    if (!parse_store_spec(store)) continue;  // Not in this build.
    const Finished refused =
        run_kvingest(listen_anywhere({"--store", store + "," + option, "--dir", (temp / "db").native()}));
    check_refused(refused, 2, option.substr(0, option.find('=')));
    CHECK_FALSE(std::filesystem::exists(temp / "db"));
  }
}

TEST_CASE("results that cannot be written are no success") {
  for (const std::string& command :
       {program("kvingest") + " --list-stores", program("kvingest") + " --help", program("kvq") + " --version",
        program("kvingest") + " --store null --listen 127.0.0.1:0 --exit-when-idle 50ms"}) {
    const Finished done = run({"sh", "-c", "exec " + command + " >/dev/full"});
    CAPTURE(command);
    check_refused(done, 1, "write the results: No space left on device");
  }
}

TEST_CASE("the configuration is printed with the values that hold, and only if a start would take it") {
  const Finished printed = run_kvingest({"--print-config", "--format", "csv"});
  CHECK(printed.exit.code == 0);
  for (const char* const line : {"listen = [ '127.0.0.1:5555' ]", "dir = 'kvdata'", "separator = ','"}) {
    CAPTURE(printed.out);
    CHECK(printed.out.find(line) != std::string::npos);
  }
  check_refused(run_kvingest({"--print-config", "--store", "nope"}), 2, "nope");
  check_refused(run_kvingest({"--print-config", "--listen", "5"}), 2, "--listen");
}

TEST_CASE("a socket file that a killed service left is taken over, one in use and other files are not") {
  TempDir temp;
  const std::string path = (temp / "feed.sock").native();
  Service::Options options{.store = "null", .args = {"--listen", "unix:" + path}, .listen = false};
  {
    Service killed(options);
    check_refused(run_kvingest({"--store", "null", "--listen", "unix:" + path}), 1, "already in use");
    killed.kill();
  }
  CHECK(std::filesystem::exists(path));
  Service again(options);
  again.stop();
  std::ofstream(path) << "mine";
  check_refused(run_kvingest({"--store", "null", "--listen", "unix:" + path}), 1, "no socket");
  CHECK(std::filesystem::file_size(path) == 4);
}

TEST_CASE("wrong usage exits with 2 before anything is touched") {
  TempDir temp;
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  int last_cpu = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) last_cpu = cpu;
  }
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--no-such-flag"}, "no-such-flag"},
      {{"--cpu", "4096"}, std::to_string(last_cpu)},
      {{"--cpu", "4096"}, "4096"},
      {{"--cpu", "first"}, "first"},
      {{"--key", "{unclosed"}, "unclosed"},
      {{"--key", "{nobody}"}, "nobody"},
      {{"--format", "xml"}, "xml"},
      {{"--durability", "eternal"}, "eternal"},
      {{"--max-line", "12Q"}, "12Q"},
      {{"--queue-bytes", "-1"}, "queue-bytes"},
      {{"--listen", "nonsense"}, "nonsense"},
      {{"--listen", "127.0.0.1:99999"}, "99999"},
      {{"--listen", "0.0.0.0:0"}, "--insecure"},
  };
  for (const auto& [args, word] : cases) {
    std::vector<std::string> words{"--store", "lmdb", "--dir", (temp / "db").native()};
    words.insert(words.end(), args.begin(), args.end());
    check_refused(run_kvingest(listen_anywhere(words)), 2, word);
    CHECK_FALSE(std::filesystem::exists(temp / "db"));
  }
}

TEST_CASE("listening beyond loopback works when it is asked for by name") {
  Service service({.store = "map", .args = {"--listen", "0.0.0.0:0", "--insecure"}, .listen = false});
  const std::string port = service.address().substr(service.address().rfind(':'));
  TcpClient peer("127.0.0.1" + port);
  peer.send_all("x\n!kv sync\n");
  CHECK(Answer::parse(peer.read_line().value()).number("stored") == 1);
}

TEST_CASE("a port in use is said, with the port, and nothing is made") {
  const TcpListener taken;
  TempDir temp;
  const Finished refused =
      run_kvingest({"--store", "lmdb", "--dir", (temp / "db").native(), "--listen", taken.address()});
  check_refused(refused, 1, "in use");
  check_refused(refused, 1, std::to_string(taken.port()));
  CHECK_FALSE(std::filesystem::exists(temp / "db"));
}

ENGINE_SCENARIO(persistent, "a directory in use, of another engine or with another template is refused with 3") {
  const std::string dir = subject.dir().native();
  Service service(service_on(subject));
  CHECK(service.sync("one\n").number("stored") == 1);
  const std::string pid = std::to_string(service.pid());
  check_refused(run_kvingest(listen_anywhere({"--store", store_name(subject), "--dir", dir})), 3, pid);
  CHECK(count_records(subject.dir()) == 1);  // By LMDB itself, else through the service.
  const Finished replay = run({program("kvq"), "rejects", "replay", "--dir", dir});
  CHECK(replay.exit.code == 3);
  const Finished import = run({program("kvq"), "import", "-", "--dir", dir});
  CHECK(import.exit.code == 3);
  CHECK(import.err.find(pid) != std::string::npos);
  service.stop();
  const std::string other = subject.engine().name == "file" ? "mmap" : "file";
  check_refused(run_kvingest(listen_anywhere({"--store", other, "--dir", dir})), 3, subject.engine().name);
  const Finished template_differs =
      run_kvingest(listen_anywhere({"--store", store_name(subject), "--dir", dir, "--key", "x/{seq}"}));
  CHECK((template_differs.exit.code == 2 || template_differs.exit.code == 3));
  check_refused(template_differs, template_differs.exit.code, "--force-template");
  CHECK(count_records(subject.dir()) == 1);
}

TEST_CASE("another template is taken when it is forced") {
  TempDir temp;
  Service first({.store = "lmdb", .dir = temp / "db"});
  CHECK(first.sync("one\n").number("stored") == 1);
  first.stop();
  Service second({.store = "lmdb", .dir = temp / "db", .args = {"--key", "x/{seq}", "--force-template"}});
  CHECK(second.sync("two\n").number("stored") == 1);
  second.stop();
  CHECK(count_records(temp / "db") == 2);
  const std::string dir = (temp / "db").native();
  const Finished audited = run({program("kvq"), "audit", "--dir", dir});
  CAPTURE(audited.out);
  CHECK(audited.exit.code == 0);
  CHECK(audited.out.find("the key template was changed by force") != std::string::npos);
  CHECK(audited.out.find("overwritten 0\n") != std::string::npos);
  check_refused(run_kvingest(listen_anywhere({"--dir", dir, "--force-template", "--retain-bytes", "1M"})), 3,
                "has keys of several templates (before --force-template it was");
}

ENGINE_SCENARIO(persistent, "a store that cannot be made or opened is said with its path, exit 3") {
  const std::string name = store_name(subject);
  check_refused(run_kvingest(listen_anywhere({"--store", name, "--dir", "/proc/none/db"})), 3, "/proc/none");
  write_text(subject.temp() / "file", "in the way");
  const std::string in_the_way = (subject.temp() / "file").native();
  check_refused(run_kvingest(listen_anywhere({"--store", name, "--dir", in_the_way})), 3, in_the_way);
  CHECK(file_text(subject.temp() / "file") == "in the way");
  std::filesystem::create_directory(subject.temp() / "foreign");
  write_text(subject.temp() / "foreign/holiday.jpg", "precious");
  const std::string foreign = (subject.temp() / "foreign").native();
  check_refused(run_kvingest(listen_anywhere({"--store", name, "--dir", foreign})), 3, foreign);
}

ENGINE_SCENARIO(persistent, "missing permission is said with the path, and a store of others is left as it is") {
  if (const auto reason = other_user_missing()) KV_SKIP(*reason);
  {
    Service service(service_on(subject));
    CHECK(service.sync("one\n").number("stored") == 1);
    service.stop();
  }
  REQUIRE(::chmod(subject.temp().path().c_str(), 0755) == 0);
  const auto before = tree(subject.dir());
  const std::string name = store_name(subject);
  const std::string dir = subject.dir().native();
  for (const std::string& place : {dir, (subject.temp() / "new").native()}) {
    const Finished refused = run_kvingest(listen_anywhere({"--store", name, "--dir", place}), {.user = kNobody});
    check_refused(refused, 3, place);
    check_refused(refused, 3, "ermission denied");
  }
  const bool unchanged = tree(subject.dir()) == before;
  CHECK(unchanged);
}

TEST_CASE("kvq says what is wrong with a directory, and makes none") {
  TempDir temp;
  for (const std::string command : {"count", "scan", "stats", "verify"}) {
    const Finished done = run({program("kvq"), command, "--dir", (temp / "none").native()});
    CAPTURE(command, done.err);
    CHECK(done.exit.code != 0);
    CHECK(done.err.find((temp / "none").native()) != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(temp / "none"));
}

}  // namespace
}  // namespace kvingest::test
