// What C++ calls and objects cost: a call in each of its forms, making and destroying objects, and, counted and not
// timed, how large objects are and how often handing one on copies it.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "bench/micro.hpp"
#include "bench/seed.hpp"
#include "bench/seed_objects.hpp"
#include "bench/table.hpp"
#include "kvingest/function_ref.hpp"

namespace kvingest::bench {
namespace {

constexpr std::uint64_t kCalls = 1'000;  // In one go: the loop around them is a part of each.

/// The compiler does not know what a pointer is about, and so cannot look through the call.
template <class T>
T* hidden(T* pointer) {
  asm volatile("" : "+r"(pointer));
  return pointer;
}

/// The work of all calls: one addition that cannot be left out.
inline std::uint64_t one_more(std::uint64_t number) {
  asm volatile("" : "+r"(number));
  return number + 1;
}
[[gnu::noinline]] std::uint64_t one_more_called(std::uint64_t number) {
  return one_more(number);
}

struct Interface {
  Interface() = default;
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
  virtual ~Interface() = default;
  virtual std::uint64_t call(std::uint64_t number) = 0;
};
struct Implementation final : Interface {
  std::uint64_t call(std::uint64_t number) override { return one_more(number); }
};
struct SharedRoot {
  SharedRoot() = default;
  SharedRoot(const SharedRoot&) = delete;
  SharedRoot& operator=(const SharedRoot&) = delete;
  virtual ~SharedRoot() = default;
  virtual std::uint64_t call(std::uint64_t number) = 0;
};
/// Its root is found through the table of virtual functions, at each call.
struct MiddleOne : virtual SharedRoot {};
struct MiddleTwo : virtual SharedRoot {};
struct Diamond final : MiddleOne, MiddleTwo {
  std::uint64_t call(std::uint64_t number) override { return one_more(number); }
};
struct Adder {
  std::uint64_t operator()(std::uint64_t number) const { return one_more(number); }
};

template <class Call>
std::uint64_t repeat_call(Call&& call) {
  std::uint64_t number = 0;
  for (std::uint64_t i = 0; i < kCalls; ++i) number = call(number);
  return number;
}

/// All ways to call, each with the sum that proves that it was called.
class CallPlan {
 public:
  explicit CallPlan(MicroPlan& plan) : plan_(plan) {}

  void add_calls() {
    add_call("inlined", [] { return repeat_call([](std::uint64_t n) { return one_more(n); }); });
    add_call("direct", [] { return repeat_call([](std::uint64_t n) { return one_more_called(n); }); });
    add_call("function pointer", [] {
      std::uint64_t (*const call)(std::uint64_t) = hidden(&one_more_called);
      return repeat_call([call](std::uint64_t n) { return call(n); });
    });
    add_call("function reference", [] {
      std::uint64_t (&call)(std::uint64_t) = *hidden(&one_more_called);
      return repeat_call([&call](std::uint64_t n) { return call(n); });
    });
    add_call("virtual", [object = std::make_shared<Implementation>()] {
      Interface* const known_as = hidden<Interface>(object.get());
      return repeat_call([known_as](std::uint64_t n) { return known_as->call(n); });
    });
    add_call("virtual, type known", [object = std::make_shared<Implementation>()] {
      Implementation* const known_as = hidden(object.get());
      return repeat_call([known_as](std::uint64_t n) { return known_as->call(n); });
    });
    add_call("through a virtual base", [object = std::make_shared<Diamond>()] {
      MiddleTwo* const known_as = hidden<MiddleTwo>(object.get());
      return repeat_call([known_as](std::uint64_t n) { return known_as->call(n); });
    });
    add_call("FunctionRef", [] {
      const Adder adder;
      FunctionRef<std::uint64_t(std::uint64_t)> call(adder);
      const auto* const known_as = hidden(&call);
      return repeat_call([known_as](std::uint64_t n) { return (*known_as)(n); });
    });
    add_call("std::function", [call = std::function<std::uint64_t(std::uint64_t)>(Adder())] {
      const auto* const known_as = hidden(&call);
      return repeat_call([known_as](std::uint64_t n) { return (*known_as)(n); });
    });
    add_call("std::visit", [] {
      std::variant<Adder, std::uint64_t (*)(std::uint64_t)> call = Adder();
      auto* const known_as = hidden(&call);
      return repeat_call(
          [known_as](std::uint64_t n) { return std::visit([n](const auto& one) { return one(n); }, *known_as); });
    });
    add_call("exception thrown and caught", [] {
      return repeat_call([](std::uint64_t n) -> std::uint64_t {
        try {
          throw std::runtime_error("x");
        } catch (const std::runtime_error& error) {
          return n + static_cast<std::uint64_t>(*hidden(error.what()) == 'x');
        }
      });
    });
  }

  void add_objects() {
    add_object("on the stack", [] {
      std::uint64_t number = 1;
      return *hidden(&number);
    });
    add_object("new and delete", [] { return *hidden(std::make_unique<std::uint64_t>(1).get()); });
    add_object("make_shared", [] { return *hidden(std::make_shared<std::uint64_t>(1).get()); });
    add_object("copy of a shared_ptr", [object = std::make_shared<std::uint64_t>(1)] {
      const std::shared_ptr<std::uint64_t> copy = *hidden(&object);
      return *hidden(copy.get());
    });
    add_object("new, virtual", [] {
      const std::unique_ptr<Interface> object = std::make_unique<Implementation>();
      return hidden(object.get())->call(0);
    });
    add_object("new, virtual base", [] {
      const std::unique_ptr<SharedRoot> object = std::make_unique<Diamond>();
      return hidden(object.get())->call(0);
    });
    add_object("std::string of 15", [] { return std::uint64_t{hidden_string(15).size() == 15}; });
    add_object("std::string of 16", [] { return std::uint64_t{hidden_string(16).size() == 16}; });
    add_object("std::function, 8 bytes", [] {
      const std::uint64_t one = *hidden(&kOne);
      const std::function<std::uint64_t()> call = [one] { return one; };
      return (*hidden(&call))();
    });
    add_object("std::function, 24 bytes", [] {
      const std::uint64_t one = *hidden(&kOne);
      const std::function<std::uint64_t()> call = [one, two = one, three = one] { return one * two * three; };
      return (*hidden(&call))();
    });
  }

 private:
  static constexpr std::uint64_t kOne = 1;

  static std::string hidden_string(std::size_t bytes) { return std::string(*hidden(&bytes), 'x'); }

  template <class Run>
  void add_call(const char* name, Run run) {
    add("a call", "calls", name, [run] { return run() == kCalls; });
  }
  /// `make` makes an object and returns 1 out of it.
  template <class Make>
  void add_object(const char* name, Make make) {
    add("an object made and destroyed", "objects", name, [make] {
      std::uint64_t made = 0;
      for (std::uint64_t i = 0; i < kCalls; ++i) made += make();
      return made == kCalls;
    });
  }

  template <class Run>
  void add(const char* group, const char* workload, const char* name, Run run) {
    MicroRow row;
    row.group = group;
    row.name = name;
    row.subject.workload = workload;
    row.items = static_cast<double>(kCalls);
    row.run = [run] { static_cast<void>(run()); };
    row.check = [run]() -> Result<void> {
      if (run()) return {};
      return fail(Code::corrupt, "it gave something else");
    };
    plan_.rows.push_back(std::move(row));
  }

  MicroPlan& plan_;
};

void report_counts(Bench& bench) {
  Table sizes("seed: bytes of an object", {"object", "bytes"}, 1);
  for (const ObjectSize& object : object_sizes()) {
    sizes.add({object.name, std::to_string(object.bytes)});
    Subject subject{.suite = "seed", .workload = "object sizes"};
    subject.variant = object.name;
    bench.results.add(subject, "object_bytes", "bytes", {static_cast<double>(object.bytes)});
  }
  Table ways("seed: how often handing an object on copies and moves it", {"way", "copies", "moves"}, 1);
  for (const HandingOn& way : ways_of_handing_on()) {
    ways.add({way.name, std::to_string(way.handled.copies), std::to_string(way.handled.moves)});
    Subject subject{.suite = "seed", .workload = "handing on"};
    subject.variant = way.name;
    bench.results.add(subject, "copies", "1", {static_cast<double>(way.handled.copies)});
    bench.results.add(subject, "moves", "1", {static_cast<double>(way.handled.moves)});
  }
  bench.tables += sizes.text() + "\n" + ways.text() + "\n";
}

}  // namespace

Result<void> run_seed_calls(Bench& bench) {
  MicroPlan plan{.suite = "seed", .item = "call"};
  plan.cycles_per_ns = cycles_per_ns();
  CallPlan calls(plan);
  calls.add_calls();
  calls.add_objects();
  plan.ratios = {{"direct", "ratio_to_direct"}, {"on the stack", "ratio_to_stack"}};
  plan.notes = {"A thousand calls in a loop that is a part of each; what is called adds one, and each call waits for",
                "the one before. Where it says `type known` the compiler may call the function at once."};
  KV_TRY(run_micro(bench, plan));
  report_counts(bench);
  return {};
}

}  // namespace kvingest::bench
