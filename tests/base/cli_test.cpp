// The command line: where a value comes from, and what a user reads when something is wrong.
#include "base/cli.hpp"

#include "base/nearest.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::cli {
namespace {

using std::chrono::milliseconds;

/// A program with one option of each kind, as kvingest has them.
struct Program {
  std::string dir = "kvdata";
  std::uint64_t queue_bytes = 8 << 20;
  milliseconds drain{5'000};
  std::optional<milliseconds> idle;
  std::optional<std::uint64_t> demo;
  int port = 5555;
  bool json = false;
  std::vector<std::string> listen = {"127.0.0.1:5555"};
  std::string format = "line";
  std::string token;
  std::string key;
  CommandLine line{"prog", "Does something."};

  Program() {
    line.root().text("dir", &dir, "PATH", "store directory");
    line.root().size("queue-bytes", &queue_bytes, "budget");
    line.root().duration("drain-timeout", &drain, "how long to wait");
    line.root().duration("idle-timeout", &idle, "close idle connections");
    line.root().number("demo", &demo, "N", "run a demonstration").may_stand_alone("1000000");
    line.root().number("port", &port, "N", "a port", 1, 65535);
    line.root().flag("json", &json, "print JSON");
    line.root().list("listen", &listen, "HOST:PORT", "accept here");
    line.root().choice("format", &format, {"line", "csv", "json"}, "how lines are read");
    line.root().text("token", &token, "TEXT", "what the server asks for").hide_value();
  }

  std::optional<Ending> parse(std::vector<const char*> arguments, std::vector<const char*> environment = {}) {
    arguments.insert(arguments.begin(), "prog");
    environment.push_back(nullptr);
    return line.parse(static_cast<int>(arguments.size()), arguments.data(), environment.data());
  }
};

std::string refusal(std::vector<const char*> arguments, std::vector<const char*> environment = {}) {
  Program p;
  const auto ending = p.parse(std::move(arguments), std::move(environment));
  REQUIRE(ending);
  CHECK(ending->exit_code == kUsage);
  CHECK(ending->out.empty());
  return ending->err;
}

/// A configuration file that is gone with the test.
struct ConfigFile {
  explicit ConfigFile(const std::string& text) { test::write_text(file, text); }
  test::TempDir dir;
  std::string file = (dir / "kv.toml").native();
};

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("what is not given keeps its default") {
  Program p;
  REQUIRE_FALSE(p.parse({}));
  CHECK(p.dir == "kvdata");
  CHECK(p.listen == std::vector<std::string>{"127.0.0.1:5555"});
  CHECK_FALSE(p.demo);
}

TEST_CASE("options are read in both spellings") {
  Program p;
  REQUIRE_FALSE(p.parse({"--dir", "a b", "--queue-bytes=16M", "--drain-timeout", "250ms", "--json", "--port", "80",
                         "--idle-timeout=2", "--format", "csv"}));
  CHECK(p.dir == "a b");
  CHECK(p.queue_bytes == 16u << 20);
  CHECK(p.drain == milliseconds(250));
  CHECK(p.idle == milliseconds(2));
  CHECK(p.json);
  CHECK(p.port == 80);
  CHECK(p.format == "csv");
}

TEST_CASE("any text is a value, also an empty one and one that looks like an option or a template") {
  for (const char* text : {"", "-5", "--json", "{}", "{symbol}/{date}", "[a]", "a,b", "a=b", " "}) {
    Program p;
    REQUIRE_FALSE(p.parse({"--dir", text, "--port", "9"}));
    CHECK(p.dir == text);
    CHECK(p.port == 9);
    CHECK_FALSE(p.json);
  }
  Program p;
  REQUIRE_FALSE(p.parse({"--dir=", "--port", "9"}));
  CHECK(p.dir.empty());
  CHECK(p.port == 9);
}

TEST_CASE("a repeatable option replaces its default and keeps the order given") {
  Program p;
  REQUIRE_FALSE(p.parse({"--listen", "127.0.0.1:1", "--json", "--listen=unix:/x"}));
  CHECK(p.listen == std::vector<std::string>{"127.0.0.1:1", "unix:/x"});
}

TEST_CASE("an option that may stand alone has a value of its own") {
  Program alone, valued, followed, equals;
  REQUIRE_FALSE(alone.parse({"--demo"}));
  CHECK(alone.demo == 1'000'000u);
  REQUIRE_FALSE(valued.parse({"--demo", "7"}));
  CHECK(valued.demo == 7u);
  REQUIRE_FALSE(followed.parse({"--demo", "--json"}));
  CHECK(followed.demo == 1'000'000u);
  CHECK(followed.json);
  REQUIRE_FALSE(equals.parse({"--demo=9"}));
  CHECK(equals.demo == 9u);
}

TEST_CASE("the option wins over the environment, and that over the file") {
  const ConfigFile config("dir = 'from-file'\nport = 1\ndrain-timeout = '1s'\n");
  Program p;
  REQUIRE_FALSE(p.parse({"--config", config.file.c_str(), "--dir", "from-option"},
                        {"KVINGEST_DIR=from-environment", "KVINGEST_PORT=2", "KVINGEST_PORTS=3"}));
  CHECK(p.dir == "from-option");
  CHECK(p.port == 2);
  CHECK(p.drain == milliseconds(1'000));
  CHECK(p.queue_bytes == 8u << 20);
}

TEST_CASE("the file may be named in the environment, and holds every kind of value") {
  const ConfigFile config("json = true\nlisten = ['a:1', 'b:2']\nqueue-bytes = 4096\ndemo = 5\nidle-timeout = '2s'\n");
  const std::string variable = "PROG_CONFIG=" + config.file;
  Program p;
  REQUIRE_FALSE(p.parse({}, {variable.c_str(), "KVINGEST_CONFIG=/no/such.toml"}));
  CHECK(p.json);
  CHECK(p.listen == std::vector<std::string>{"a:1", "b:2"});
  CHECK(p.queue_bytes == 4096);
  CHECK(p.demo == 5u);
  CHECK(p.idle == milliseconds(2'000));
}

TEST_CASE("the environment separates the values of a repeatable option by commas") {
  Program p;
  REQUIRE_FALSE(p.parse({}, {"KVINGEST_LISTEN=a:1,b:2", "KVINGEST_JSON=true", "KVINGEST_DIR="}));
  CHECK(p.listen == std::vector<std::string>{"a:1", "b:2"});
  CHECK(p.json);
  CHECK(p.dir.empty());
}

TEST_CASE("an option whose name kvingest uses otherwise is found in the program's own environment") {
  const char* const environment[] = {"KVINGEST_CPU=auto", "KVFEED_CPU=3", "KVINGEST_JSON=true", nullptr};
  for (const bool asks_for_help : {false, true}) {
    CommandLine line("kvfeed", "Sends things.");
    std::optional<int> cpu;
    bool json = false;
    line.root().number("cpu", &cpu, "C", "pin").own_variable();
    line.root().flag("json", &json, "print JSON");
    const char* const arguments[] = {"kvfeed", "--help"};
    const auto ending = line.parse(asks_for_help ? 2 : 1, arguments, environment);
    REQUIRE(ending.has_value() == asks_for_help);
    if (ending) {
      CHECK(holds(ending->out, "(KVINGEST_OPTION_NAME; but KVFEED_CONFIG, KVFEED_CPU)"));
      continue;
    }
    CHECK(cpu == 3);
    CHECK(json);
  }
}

TEST_CASE("an unknown option is refused with the nearest known one") {
  CHECK(refusal({"--lisen", "x:1"}) == "prog: unknown option --lisen; did you mean --listen?\ntry 'prog --help'\n");
  CHECK(holds(refusal({"--queue_bytes=1"}), "--queue-bytes"));
  CHECK_FALSE(holds(refusal({"--zzzzzzzz"}), "did you mean"));
}

TEST_CASE("a wrong value is refused with the option, the variable or the file it stands in") {
  const ConfigFile config("port = 70000\n");
  CHECK(holds(refusal({"--port", "0"}), "--port: '0' is not a whole number from 1 to 65535"));
  CHECK(holds(refusal({"--queue-bytes", "much"}), "--queue-bytes: 'much' is not a size"));
  CHECK(holds(refusal({}, {"KVINGEST_DRAIN_TIMEOUT=soon"}), "KVINGEST_DRAIN_TIMEOUT: 'soon' is not a time"));
  CHECK(holds(refusal({}, {"KVINGEST_JSON=maybe"}), "KVINGEST_JSON: 'maybe' is neither true nor false"));
  CHECK(holds(refusal({"--config", config.file.c_str()}), config.file + ": port: '70000' is not"));
  CHECK(holds(refusal({"--format", "cvs"}), "--format: 'cvs' is none of line|csv|json; did you mean csv?"));
}

TEST_CASE("a missing value, a value given twice and a stray argument are refused") {
  CHECK(holds(refusal({"--dir"}), "--dir"));
  CHECK(holds(refusal({"--dir", "a", "--dir", "b"}), "--dir"));
  CHECK(holds(refusal({"stray"}), "'stray' is not expected here"));
  CHECK(holds(refusal({"--json=perhaps"}), "--json"));
}

TEST_CASE("a configuration file that is wrong is refused with its name and place") {
  const ConfigFile unknown("dir = 'x'\nqueue-byte = 1\n");
  const ConfigFile broken("dir = 'x'\nport = = 1\n");
  const ConfigFile nested("[dir]\nx = 1\n");
  const ConfigFile several("dir = ['a', 'b']\n");
  CHECK(holds(refusal({"--config", unknown.file.c_str()}), "unknown key queue-byte; did you mean queue-bytes?"));
  CHECK(holds(refusal({"--config", broken.file.c_str()}), broken.file + ":2: "));
  CHECK(holds(refusal({"--config", nested.file.c_str()}), "dir must be a text, a number, true, false or an array"));
  CHECK(holds(refusal({"--config", several.file.c_str()}), "dir: one value is expected, not 2"));
  CHECK(holds(refusal({"--config", "/no/such.toml"}), "/no/such.toml: No such file"));
}

TEST_CASE("the effective configuration is printed as a file that gives it again, secrets masked") {
  Program p;
  const auto printed = p.parse(
      {"--print-config", "--dir", "a\"b\\c", "--token", "s3cret", "--demo=12", "--listen", "a:1", "--listen", "b:2"},
      {"KVINGEST_QUEUE_BYTES=16M"});
  REQUIRE(printed);
  CHECK(printed->exit_code == kDone);
  CHECK_FALSE(holds(printed->out, "s3cret"));
  CHECK(holds(printed->out, "# idle-timeout is not set"));

  const ConfigFile config(printed->out);
  Program again;
  REQUIRE_FALSE(again.parse({"--config", config.file.c_str()}));
  CHECK(again.dir == "a\"b\\c");
  CHECK(again.token == "***");
  CHECK(again.demo == 12u);
  CHECK(again.queue_bytes == 16u << 20);
  CHECK(again.listen == std::vector<std::string>{"a:1", "b:2"});
  CHECK(again.drain == milliseconds(5'000));
}

TEST_CASE("values are checked together, and completed, before they are printed") {
  Program p;
  p.line.check_with([&p]() -> Result<void> {
    p.dir += "/below";
    return {};
  });
  const auto printed = p.parse({"--print-config", "--dir", "d"});
  REQUIRE(printed);
  CHECK(printed->exit_code == kDone);
  CHECK(holds(printed->out, "d/below"));

  Program q;
  q.line.check_with([&q]() -> Result<void> {
    return fail(Code::invalid_argument, "port {} and dir {} do not go together", q.port, q.dir);
  });
  const auto refused = q.parse({"--print-config", "--port", "1"});
  REQUIRE(refused);
  CHECK(refused->exit_code == kUsage);
  CHECK(holds(refused->err, "port 1 and dir kvdata do not go together"));
}

TEST_CASE("help names every option with its default and fits 100 columns, version is the project's") {
  Program p;
  const auto help = p.parse({"--help"});
  REQUIRE(help);
  CHECK(help->exit_code == kDone);
  for (const char* part : {"--queue-bytes SIZE", "(default 8M)", "--demo [N]", "(repeatable; default 127.0.0.1:5555)",
                           "line|csv|json", "--print-config", "-h, --help"})
    CHECK(holds(help->out, part));
  for (std::size_t at = 0; at < help->out.size();) {
    const std::size_t end = help->out.find('\n', at);
    CHECK(end - at <= 100);
    at = end + 1;
  }
  Program q;
  const auto version = q.parse({"--version"});
  REQUIRE(version);
  CHECK(version->out == "prog " + std::string(program_version()) + "\n");
}

TEST_CASE("the man page escapes what troff would take for its own, and has examples with what they do") {
  Program p;
  p.line.root().text("escape", &p.key, "C", ".a dot, a \\n and a 'quote' in a-b");
  p.line.example("--dir 'a b'", "reads a folder");
  const auto man = p.parse({"--help-as", "man"});
  REQUIRE(man);
  CHECK(man->exit_code == kDone);
  for (const char* part : {".TH PROG 1 ", "prog \\- Does something.\n", "\\fB\\-\\-queue\\-bytes\\fR \\fISIZE\\fR\n",
                           "budget (default 8M)\n", "\n\\&.a dot, a \\en and a \\(aqquote\\(aq in a\\-b\n",
                           "\\fBprog \\-\\-dir \\(aqa b\\(aq\\fR\nreads a folder\n", "\\fBkvq\\fR(1)"}) {
    CAPTURE(part, man->out);
    CHECK(holds(man->out, part));
  }
}

TEST_CASE("completion offers the words of a choice and what was suggested for other options") {
  Program p;
  p.line.root().text("kind", &p.key, "K", "what kind [of]: 'it'").suggest({"one", "two:3"});
  const auto bash = p.parse({"--help-as=bash"});
  REQUIRE(bash);
  CHECK(holds(bash->out, "--format) offer -W 'line csv json'; return ;;"));
  CHECK(holds(bash->out, "--kind) offer -W 'one two:3'; return ;;"));
  CHECK(holds(bash->out, "complete -F _prog prog\n"));
  Program q;
  q.line.root().text("kind", &q.key, "K", "what kind [of]: 'it'").suggest({"one", "two:3"});
  const auto zsh = q.parse({"--help-as", "zsh"});
  REQUIRE(zsh);
  CHECK(zsh->out.starts_with("#compdef prog\n"));
  CHECK(holds(zsh->out, "'--kind=[what kind \\[of\\]: '\\''it'\\'']:K:(one two\\:3)'"));
  CHECK(holds(refusal({"--help-as", "fish"}), "--help-as: 'fish' is none of man|bash|zsh"));
}

/// A program with subcommands, as kvq has them.
struct Tool {
  std::string key, dir;
  std::uint64_t count = 10;
  bool follow = false;
  std::vector<std::string> files;
  CommandLine line{"tool", "Reads things."};

  Tool() {
    Command& get = line.command("get", "prints the value of a key");
    get.positional("KEY", &key, "the key").require();
    get.text("dir", &dir, "DIR", "where");
    Command& tail = line.command("tail", "prints the newest");
    tail.number("lines", &count, "N", "how many").short_name('n');
    tail.flag("follow", &follow, "go on").short_name('f');
    tail.positionals("FILE", &files, "what");
    tail.text("dir", &dir, "DIR", "where");
  }
  std::optional<Ending> parse(std::vector<const char*> arguments, std::vector<const char*> environment = {}) {
    arguments.insert(arguments.begin(), "tool");
    environment.push_back(nullptr);
    return line.parse(static_cast<int>(arguments.size()), arguments.data(), environment.data());
  }
};

TEST_CASE("a subcommand has its own options, letters and positional arguments") {
  Tool tool;
  REQUIRE_FALSE(tool.parse({"tail", "-n", "3", "-f", "one", "--dir", "d", "two"}));
  CHECK(tool.line.chosen() == "tail");
  CHECK(tool.count == 3);
  CHECK(tool.follow);
  CHECK(tool.dir == "d");
  CHECK(tool.files == std::vector<std::string>{"one", "two"});
}

TEST_CASE("a positional argument may be the name of a subcommand, empty, or begin with a dash behind --") {
  for (const char* text : {"tail", "get", "", "{}", "a b"}) {
    Tool tool;
    REQUIRE_FALSE(tool.parse({"get", text, "--dir", "d"}));
    CHECK(tool.key == text);
    CHECK(tool.dir == "d");
  }
  Tool tool;
  REQUIRE_FALSE(tool.parse({"get", "--dir", "d", "--", "-key"}));
  CHECK(tool.key == "-key");
}

TEST_CASE("wrong use of subcommands is refused") {
  const auto refusal = [](std::vector<const char*> arguments) {
    Tool tool;
    const auto ending = tool.parse(std::move(arguments));
    REQUIRE(ending);
    CHECK(ending->exit_code == kUsage);
    return ending->err;
  };
  CHECK(holds(refusal({}), "a command is missing"));
  CHECK(holds(refusal({"tial"}), "unknown command 'tial'; did you mean tail?"));
  CHECK(holds(refusal({"get"}), "KEY is missing\ntry 'tool get --help'"));
  CHECK(holds(refusal({"get", "a", "b"}), "'b' is not expected here"));
  CHECK(holds(refusal({"get", "a", "--dri", "d"}), "unknown option --dri; did you mean --dir?"));
  CHECK(holds(refusal({"--dir", "d", "get", "a"}), "unknown option --dir"));
}

TEST_CASE("a subcommand has its own help, environment and printed configuration") {
  Tool helped, printed;
  const auto help = helped.parse({"tail", "--help"});
  REQUIRE(help);
  CHECK(holds(help->out, "usage: tool tail [OPTIONS] [FILE...]"));
  const auto config = printed.parse({"tail", "--print-config"}, {"KVINGEST_DIR=env"});
  REQUIRE(config);
  CHECK(holds(config->out, "dir = 'env'") != holds(config->out, "dir = \"env\""));
  CHECK(holds(config->out, "lines = 10"));
}

TEST_CASE("the nearest name is found for a slip of the finger and for nothing else") {
  const std::string_view known[] = {"lmdb", "rocksdb", "map", "mmap"};
  CHECK(nearest_name("rockdb", known) == "rocksdb");
  CHECK(nearest_name("lmbd", known) == "lmdb");
  CHECK(nearest_name("mpa", known) == "map");
  CHECK(nearest_name("postgres", known).empty());
  CHECK(nearest_name("", known).empty());
}

}  // namespace
}  // namespace kvingest::cli
