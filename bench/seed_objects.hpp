// seed_objects.hpp -- objects whose cost is counted: how often they are copied and moved, in which order their parts
// are made, and how large they are.
//
// Threads: one; counters and traces are of the object that was given them.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kvingest::bench {

/// How often something was copied and moved.
struct Handled {
  int copies = 0;
  int moves = 0;
  friend bool operator==(const Handled&, const Handled&) = default;
};

/// Counts for itself.
class Counted {
 public:
  explicit Counted(Handled& handled) noexcept : handled_(&handled) {}
  Counted(const Counted& other) noexcept : handled_(other.handled_) { ++handled_->copies; }
  Counted(Counted&& other) noexcept : handled_(other.handled_) { ++handled_->moves; }
  Counted& operator=(const Counted&) = delete;
  Counted& operator=(Counted&&) = delete;
  ~Counted() = default;

 private:
  Handled* handled_;
};

/// A way of handing an object on, and what it did to it.
struct HandingOn {
  std::string name;
  Handled handled;
};
[[nodiscard]] std::vector<HandingOn> ways_of_handing_on();

/// What is said as an object with a base, a virtual base and a member is made and destroyed: "+base", "-base".
[[nodiscard]] std::vector<std::string> trace_of_construction();

struct ObjectSize {
  std::string name;
  std::size_t bytes;
};
/// Of objects with one int in them, by what else they have.
[[nodiscard]] std::vector<ObjectSize> object_sizes();

}  // namespace kvingest::bench
