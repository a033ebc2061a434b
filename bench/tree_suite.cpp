// The tree suite: a binary tree to bytes and back in its three forms, beside walking it and building it.
#include <map>
#include <memory>
#include <random>

#include "bench/micro.hpp"
#include "kvingest/codec/tree.hpp"

namespace kvingest::bench {
namespace {

using codec::kNoNode;
using codec::TreeForm;
using Tree = codec::BinaryTree<std::uint32_t>;

constexpr std::uint64_t kUsualNodes = 1'000'000;

const std::pair<TreeForm, std::string> kForms[] = {
    {TreeForm::compact, "compact"}, {TreeForm::in_place, "in place"}, {TreeForm::offsets, "offsets"}};

/// Plain insertion into a search tree, from the root down.
void insert(Tree& tree, std::uint32_t value) {
  const std::uint32_t node = tree.add(value);
  if (node == 0) return tree.set_root(node);
  for (std::uint32_t at = tree.root();;) {
    const bool goes_left = value < tree.value(at);
    const std::uint32_t child = goes_left ? tree.left(at) : tree.right(at);
    if (child == kNoNode) return goes_left ? tree.set_left(at, node) : tree.set_right(at, node);
    at = child;
  }
}

/// The middle of each range first: inserted in this order the tree is balanced.
void middles(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& out) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges = {{from, to}};
  while (!ranges.empty()) {
    const auto [begin, end] = ranges.back();
    ranges.pop_back();
    if (begin == end) continue;
    const std::uint32_t middle = begin + (end - begin) / 2;
    out.push_back(middle);
    ranges.emplace_back(middle + 1, end);
    ranges.emplace_back(begin, middle);
  }
}

struct Shape {
  std::string name;
  bool may_be_inserted;  ///< A list takes the square of its length to insert.
  Tree (*make)(std::uint32_t nodes, std::uint64_t seed);
};

Tree make_list(std::uint32_t nodes) {
  Tree tree;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const std::uint32_t node = tree.add(i);
    node == 0 ? tree.set_root(node) : tree.set_left(node - 1, node);
  }
  return tree;
}

const Shape kShapes[] = {
    {"balanced", true,
     [](std::uint32_t nodes, std::uint64_t) {
       Tree tree;
       std::vector<std::uint32_t> order;
       middles(0, nodes, order);
       for (const std::uint32_t value : order) insert(tree, value);
       return tree;
     }},
    {"random", true,
     [](std::uint32_t nodes, std::uint64_t seed) {
       Tree tree;
       std::vector<std::uint32_t> order(nodes);
       for (std::uint32_t i = 0; i < nodes; ++i) order[i] = i;
       std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
       for (const std::uint32_t value : order) insert(tree, value);
       return tree;
     }},
    {"list", false, [](std::uint32_t nodes, std::uint64_t) { return make_list(nodes); }},
};

/// A bare depth-first walk that adds up the values.
template <class View>
std::uint64_t walk_sum(const View& tree) {
  std::vector<typename View::Handle> rights;
  std::uint64_t sum = 0;
  typename View::Handle at = tree.root();
  for (;;) {
    if (!View::is_null(at)) {
      sum += tree.value(at);
      rights.push_back(tree.right(at));
      at = tree.left(at);
    } else if (rights.empty()) {
      return sum;
    } else {
      at = rights.back();
      rights.pop_back();
    }
  }
}

struct InOrder {
  std::vector<std::uint32_t> values;
  bool node(std::uint32_t value) { return values.push_back(value), true; }
  void none() {}
};

/// The rows of one tree.
class TreePlan {
 public:
  TreePlan(MicroPlan& plan, const Shape& shape, std::uint32_t nodes, std::uint64_t seed)
      : plan_(plan), shape_(shape), tree_(std::make_shared<const Tree>(shape.make(nodes, seed))) {}

  Result<void> add_all() {
    const std::uint64_t sum = walk_sum(*tree_);
    add(
        "walk and sum", 0, [tree = tree_] { return walk_sum(*tree); }, sum);
    if (shape_.may_be_inserted) {
      const auto order = std::make_shared<InOrder>();
      walk_tree(*tree_, *order);
      add(
          "insert in order", 0,
          [order] {
            Tree built;
            for (const std::uint32_t value : order->values) insert(built, value);
            return built;
          },
          sum);
    }
    for (const auto& [form, name] : kForms) KV_TRY(add_form(form, name, sum));
    return {};
  }

 private:
  Result<void> add_form(TreeForm form, const std::string& name, std::uint64_t sum) {
    auto written = write_tree(*tree_, form);
    KV_TRY(written);
    const auto bytes = std::make_shared<const std::string>(*std::move(written));
    const auto size = static_cast<double>(bytes->size());
    add(
        "write " + name, size, [tree = tree_, form] { return *write_tree(*tree, form); }, *bytes);
    add(
        "read " + name, size, [bytes] { return *codec::read_tree<std::uint32_t>(*bytes); }, sum);
    if (form != TreeForm::in_place) return {};
    add(
        "open in place", size, [bytes] { return *codec::TreeImage<std::uint32_t>::open(*bytes); }, sum);
    add(
        "walk in place", size, [bytes] { return walk_sum(*codec::TreeImage<std::uint32_t>::open(*bytes)); }, sum);
    return {};
  }

  static bool agrees(std::uint64_t sum, std::uint64_t expected) { return sum == expected; }
  static bool agrees(const std::string& bytes, const std::string& expected) { return bytes == expected; }
  template <class View>
  static bool agrees(const View& tree, std::uint64_t expected) {
    return walk_sum(tree) == expected;
  }

  /// `call` gives a sum, a tree, or bytes: what the same call must give again.
  template <class Call, class Expected>
  void add(std::string name, double bytes, Call call, const Expected& expected) {
    MicroRow row;
    row.group = fmt::format("{}, {} nodes", shape_.name, tree_->size());
    row.name = std::move(name);
    row.subject.workload = shape_.name;
    row.subject.params["nodes"] = tree_->size();
    row.items = static_cast<double>(tree_->size());
    row.bytes = bytes;
    row.run = [call] {
      const auto result = call();
      asm volatile("" : : "r"(&result) : "memory");  // It is wanted although nobody looks at it.
    };
    row.check = [call, expected]() -> Result<void> {
      if (agrees(call(), expected)) return {};
      return fail(Code::corrupt, "it is not the same tree");
    };
    plan_.rows.push_back(std::move(row));
  }

  MicroPlan& plan_;
  const Shape& shape_;
  std::shared_ptr<const Tree> tree_;
};

}  // namespace

/// For each node of its three shapes: itself, its place in the order, in three forms as bytes; and one more tree.
Needs tree_needs(const Settings& settings) {
  constexpr std::uint64_t kBytesPerNode = 3 * (12 + 8 + 5 + 8 + 12) + 50;
  return {.memory_bytes = settings.items.value_or(kUsualNodes) * kBytesPerNode};
}

Result<void> run_tree_suite(Bench& bench) {
  MicroPlan plan{.suite = "tree", .item = "node"};
  for (const std::uint64_t nodes : bench.sizes({1'000, kUsualNodes})) {
    for (const Shape& shape : kShapes)
      KV_TRY(TreePlan(plan, shape, static_cast<std::uint32_t>(nodes), bench.settings.seed).add_all());
  }
  plan.ratios = {{"walk and sum", "ratio_to_walk"}, {"insert in order", "ratio_to_insert"}};
  plan.notes = {"/NAME: how many times as fast as NAME, in the same repeat: 0.5 is half as fast. Values are those",
                "of the nodes' order, all different. insert in order: a search tree built from the root down, node by",
                "node in depth-first order. open in place: all that is done before a node can be read; walk in place",
                "opens, too."};
  return run_micro(bench, plan);
}

}  // namespace kvingest::bench
