#include "bench/seed_objects.hpp"

#include <functional>
#include <memory>
#include <optional>

#include "kvingest/function_ref.hpp"

namespace kvingest::bench {
namespace {

void take_reference(const Counted& object) {
  asm volatile("" : : "r"(&object) : "memory");  // It is used.
}
void take_value(Counted object) {  // NOLINT(performance-unnecessary-value-param): what this costs is the question
  take_reference(object);
}
Counted make_counted(Handled& handled) {
  return Counted(handled);
}

/// Says when it is made and destroyed.
class Traced {
 public:
  Traced(std::vector<std::string>& trace, std::string name) : trace_(trace), name_(std::move(name)) {
    trace_.push_back("+" + name_);
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;
  ~Traced() { trace_.push_back("-" + name_); }

 private:
  std::vector<std::string>& trace_;
  std::string name_;
};

struct VirtualBase {
  explicit VirtualBase(std::vector<std::string>& trace) : traced(trace, "virtual base") {}
  Traced traced;
};
struct PlainBase : virtual VirtualBase {
  explicit PlainBase(std::vector<std::string>& trace) : VirtualBase(trace), traced_base(trace, "base") {
    trace.emplace_back(name());  // While the base is made the object is one of the base.
  }
  PlainBase(const PlainBase&) = delete;
  PlainBase& operator=(const PlainBase&) = delete;
  virtual ~PlainBase() = default;
  [[nodiscard]] virtual const char* name() const { return "is a base"; }
  Traced traced_base;
};
struct OtherBase : virtual VirtualBase {
  explicit OtherBase(std::vector<std::string>& trace) : VirtualBase(trace), traced_other(trace, "other base") {}
  Traced traced_other;
};
struct Whole final : PlainBase, OtherBase {
  explicit Whole(std::vector<std::string>& trace)
      : VirtualBase(trace), PlainBase(trace), OtherBase(trace), member(trace, "member") {
    trace.emplace_back("+whole");
  }
  [[nodiscard]] const char* name() const override { return "is whole"; }
  Traced member;
};

struct Plain {
  int number = 0;
};
struct WithVirtual {
  WithVirtual() = default;
  WithVirtual(const WithVirtual&) = default;
  WithVirtual& operator=(const WithVirtual&) = default;
  virtual ~WithVirtual() = default;
  int number = 0;
};
struct TwoVirtualBases : WithVirtual {
  int other = 0;
};
struct SecondInterface {
  SecondInterface() = default;
  SecondInterface(const SecondInterface&) = default;
  SecondInterface& operator=(const SecondInterface&) = default;
  virtual ~SecondInterface() = default;
};
struct OfTwoInterfaces : WithVirtual, SecondInterface {};
struct ThroughVirtualBase : virtual WithVirtual {};

}  // namespace

std::vector<HandingOn> ways_of_handing_on() {
  std::vector<HandingOn> ways;
  const auto way = [&](const char* name, auto&& hand_on) {
    Handled handled;
    hand_on(handled);
    ways.push_back({name, handled});
  };
  way("made in place", [](Handled& handled) { take_reference(make_counted(handled)); });
  way("by reference", [](Handled& handled) {
    const Counted object(handled);
    take_reference(object);
  });
  way("by value", [](Handled& handled) {
    const Counted object(handled);
    take_value(object);
  });
  way("by value, moved", [](Handled& handled) {
    Counted object(handled);
    take_value(std::move(object));
  });
  way("by value, made in place", [](Handled& handled) { take_value(make_counted(handled)); });
  way("push_back", [](Handled& handled) {
    std::vector<Counted> all;
    all.reserve(1);
    const Counted object(handled);
    all.push_back(object);
  });
  way("emplace_back", [](Handled& handled) {
    std::vector<Counted> all;
    all.reserve(1);
    all.emplace_back(handled);
  });
  way("a growing vector of 4", [](Handled& handled) {
    std::vector<Counted> all;
    for (int i = 0; i < 4; ++i) all.emplace_back(handled);
  });
  way("captured by a lambda, called through std::function", [](Handled& handled) {
    const Counted object(handled);
    const std::function<void()> call = [object] { take_reference(object); };
    call();
  });
  way("captured by reference, called through FunctionRef", [](Handled& handled) {
    const Counted object(handled);
    const auto call = [&object] { take_reference(object); };
    FunctionRef<void()>{call}();
  });
  return ways;
}

std::vector<std::string> trace_of_construction() {
  std::vector<std::string> trace;
  {
    const Whole whole(trace);
    const PlainBase& base = whole;
    trace.emplace_back(base.name());
  }
  return trace;
}

std::vector<ObjectSize> object_sizes() {
  return {{"an int", sizeof(Plain)},
          {"an int, virtual functions", sizeof(WithVirtual)},
          {"two ints, virtual functions", sizeof(TwoVirtualBases)},
          {"an int, two interfaces", sizeof(OfTwoInterfaces)},
          {"an int, a virtual base", sizeof(ThroughVirtualBase)},
          {"std::optional<int>", sizeof(std::optional<int>)},
          {"std::unique_ptr", sizeof(std::unique_ptr<int>)},
          {"std::shared_ptr", sizeof(std::shared_ptr<int>)},
          {"std::string", sizeof(std::string)},
          {"std::vector", sizeof(std::vector<int>)},
          {"std::function", sizeof(std::function<void()>)},
          {"FunctionRef", sizeof(FunctionRef<void()>)}};
}

}  // namespace kvingest::bench
