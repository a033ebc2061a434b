// Trees as bytes: the page's example, every form and shape back again, and damage of every kind.
#include "kvingest/codec/tree.hpp"

#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>

#include "tests/support/expect.hpp"
#include "tests/support/places.hpp"

namespace kvingest::codec {
namespace {

constexpr TreeForm kTreeForms[] = {TreeForm::compact, TreeForm::in_place, TreeForm::offsets};

enum class Shape { balanced, random, left_list, right_list, zigzag };
constexpr Shape kShapes[] = {Shape::balanced, Shape::random, Shape::left_list, Shape::right_list, Shape::zigzag};

/// A tree of `nodes` nodes; make(i) is the value of the i-th one that is made.
template <class V, class Make>
BinaryTree<V> make_tree(Shape shape, std::uint32_t nodes, Make&& make) {
  BinaryTree<V> tree;
  std::mt19937 random(7);
  std::vector<std::uint32_t> with_room;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const std::uint32_t node = tree.add(make(i));
    if (i == 0) {
      tree.set_root(node);
    } else if (shape == Shape::random) {
      const std::size_t pick = random() % with_room.size();
      const std::uint32_t parent = with_room[pick];
      const bool is_left = tree.left(parent) == kNoNode && (tree.right(parent) != kNoNode || random() % 2 == 0);
      is_left ? tree.set_left(parent, node) : tree.set_right(parent, node);
      if (tree.left(parent) != kNoNode && tree.right(parent) != kNoNode) {
        with_room[pick] = with_room.back();
        with_room.pop_back();
      }
    } else {
      const std::uint32_t parent = shape == Shape::balanced ? (i - 1) / 2 : i - 1;
      const bool is_left = shape == Shape::left_list || (shape != Shape::right_list && i % 2 == 1);
      is_left ? tree.set_left(parent, node) : tree.set_right(parent, node);
    }
    with_room.push_back(node);
  }
  return tree;
}

/// The tree as text, depth first: values, and `-` for null.
template <class View>
struct Listing {
  std::vector<std::string> all;
  bool node(const auto& value) {
    std::ostringstream text;
    text << value;
    all.push_back(text.str());
    return true;
  }
  void none() { all.emplace_back("-"); }
};

template <class View>
std::vector<std::string> listed(const View& tree) {
  Listing<View> listing;
  walk_tree(tree, listing);
  return std::move(listing.all);
}

template <class View>
std::string written(const View& tree, TreeForm form) {
  auto bytes = write_tree(tree, form);
  REQUIRE_OK(bytes);
  return std::move(*bytes);
}

/// The bytes of the page's fenced block `name`.
std::string block_of_page(const std::string& name) {
  std::ifstream page(test::project_folder() / "src/codec/TREE.md");
  std::string line;
  while (std::getline(page, line) && line != "```" + name) continue;
  std::string bytes;
  while (std::getline(page, line) && line != "```") {
    std::istringstream words(line.substr(0, line.find("  ")));
    for (std::string word; words >> word;) bytes += static_cast<char>(std::stoi(word, nullptr, 16));
  }
  return bytes;
}

TEST_CASE("the worked example of the page is what is written, and is read") {
  struct Node {
    std::uint32_t value;
    std::unique_ptr<Node> left = nullptr;
    std::unique_ptr<Node> right = nullptr;
  };
  Node root{7, std::make_unique<Node>(Node{5}), std::make_unique<Node>(Node{7})};
  root.right->right = std::make_unique<Node>(Node{5});
  const std::map<TreeForm, std::string> blocks = {
      {TreeForm::compact, "compact"}, {TreeForm::in_place, "in_place"}, {TreeForm::offsets, "offsets"}};
  for (const auto& [form, name] : blocks) {
    INFO(name);
    const std::string block = block_of_page(name);
    CHECK_FALSE(block.empty());
    CHECK(written(PointerTree<Node>(&root), form) == block);
    const auto tree = read_tree<std::uint32_t>(block);
    REQUIRE_OK(tree);
    CHECK(listed(*tree) == std::vector<std::string>{"7", "5", "-", "-", "7", "-", "5", "-", "-"});
  }
}

template <class V, class Make>
void check_forms(Make&& make) {
  for (const Shape shape : kShapes) {
    for (const std::uint32_t nodes : {0U, 1U, 2U, 3U, 31U, 32U, 100U, 3000U}) {
      const auto tree = make_tree<V>(shape, nodes, make);
      const auto expected = listed(tree);
      for (const TreeForm form : kTreeForms) {
        INFO("shape " << static_cast<int>(shape) << ", " << nodes << " nodes, form " << static_cast<int>(form));
        const std::string bytes = written(tree, form);
        const auto back = read_tree<V>(bytes);
        REQUIRE_OK(back);
        CHECK(listed(*back) == expected);
        CHECK(written(*back, form) == bytes);
        if (form != TreeForm::in_place) continue;
        const auto image = TreeImage<V>::open(bytes);
        REQUIRE_OK(image);
        CHECK_OK(image->verify());
        CHECK(listed(*image) == expected);
      }
    }
  }
}

TEST_CASE("trees of every shape come back from every form") {
  SECTION("values of their own") {
    check_forms<std::int32_t>([](std::uint32_t i) { return static_cast<std::int32_t>(i * 2654435761U); });
  }
  SECTION("few values") {
    check_forms<std::uint64_t>([](std::uint32_t i) { return std::uint64_t{i % 10} << 40; });
  }
  SECTION("many at first, few later, and the other way round") {
    check_forms<std::uint32_t>([](std::uint32_t i) { return i < 700 ? i : i % 10; });
    check_forms<std::uint32_t>([](std::uint32_t i) { return i < 1200 ? i % 10 : i; });
  }
  SECTION("floating point") {
    check_forms<double>([](std::uint32_t i) { return i * 0.5; });
  }
  SECTION("texts, each with its own length, and few of them") {
    check_forms<std::string>([](std::uint32_t i) { return std::string(i % 200, 'x') + std::to_string(i); });
    check_forms<std::string>([](std::uint32_t i) { return std::string(i % 7, 'y'); });
  }
}

/// A value of a program's own.
struct Price {
  std::int64_t ticks = 0;
  std::uint8_t scale = 0;
};
std::ostream& operator<<(std::ostream& out, const Price& price) {
  return out << price.ticks << 'e' << int{price.scale};
}

}  // namespace

template <>
struct TreeValue<Price> {
  static constexpr std::uint8_t kKind = 200;
  static constexpr std::size_t kBytes = 9;
  static void put(char* to, const Price& price) {
    put_fixed(to, static_cast<std::uint64_t>(price.ticks));
    to[8] = static_cast<char>(price.scale);
  }
  static Price get(const char* from) {
    return {static_cast<std::int64_t>(get_fixed<std::uint64_t>(from)), static_cast<std::uint8_t>(from[8])};
  }
};

namespace {

TEST_CASE("a value of one's own needs the trait alone") {
  check_forms<Price>([](std::uint32_t i) {
    return Price{-static_cast<std::int64_t>(i), static_cast<std::uint8_t>(i)};
  });
}

TEST_CASE("equal values are kept once, and a null pointer costs one bit") {
  const auto few = make_tree<std::uint64_t>(Shape::balanced, 10'000, [](std::uint32_t i) { return i % 100; });
  CHECK(written(few, TreeForm::compact).size() == 32 + (2 * 10'000 + 1 + 7) / 8 + 10'000 + 100 * 8);
  const auto own = make_tree<std::uint64_t>(Shape::random, 10'000, [](std::uint32_t i) { return i; });
  CHECK(written(own, TreeForm::compact).size() == 32 + (2 * 10'000 + 1 + 7) / 8 + 10'000 * 8);
  CHECK(written(own, TreeForm::in_place).size() == 32 + 10'000 * (4 + 8));
  CHECK(written(own, TreeForm::offsets).size() == 32 + (2 * 10'000 + 1) * 4 + 10'000 * 8);
}

TEST_CASE("a list of a million nodes is no deeper for the stack than a leaf") {
  for (const Shape shape : {Shape::left_list, Shape::right_list, Shape::zigzag}) {
    const auto tree = make_tree<std::uint32_t>(shape, 1'000'000, [](std::uint32_t i) { return i; });
    for (const TreeForm form : kTreeForms) {
      const std::string bytes = written(tree, form);
      const auto back = read_tree<std::uint32_t>(bytes);
      REQUIRE_OK(back);
      CHECK(written(*back, form) == bytes);
    }
  }
}

/// A node that is its own right child.
struct Endless {
  using Handle = int;
  static int root() { return 1; }
  static int left(int) { return 0; }
  static int right(int) { return 1; }
  static bool is_null(int node) { return node == 0; }
  static const std::uint32_t& value(int) {
    static const std::uint32_t value = 1;
    return value;
  }
};

TEST_CASE("a walk of what is no tree ends where its sink says, as a writer does at its limit") {
  struct Sink {
    int nodes = 0;
    bool node(std::uint32_t) { return ++nodes < 1000; }
    void none() {}
  } sink;
  walk_tree(Endless(), sink);
  CHECK(sink.nodes == 1000);
}

/// Reads what may be damaged in every way there is: it must end, within its memory, and the answer be the same again.
template <class V>
void read_all(const std::string& bytes) {
  const std::unique_ptr<char[]> exact(new char[bytes.size()]);  // So that a sanitizer sees a byte beyond.
  bytes.copy(exact.get(), bytes.size());
  const std::string_view view(exact.get(), bytes.size());
  const auto tree = read_tree<V>(view);
  if (tree) CHECK(listed(*tree).size() == 2 * tree->size() + 1);
  const auto image = TreeImage<V>::open(view);
  if (!image) return;
  if (image->verify()) {
    CHECK(listed(*image).size() == 2 * image->size() + 1);
  } else {
    CHECK_FALSE(tree);
  }
  for (std::uint32_t node = 0; node < image->size(); ++node) {
    static_cast<void>(image->value(node));
    for (const std::uint32_t child : {image->left(node), image->right(node)})
      CHECK((child == kNoNode || (child > node && child < image->size())));
  }
}

template <class V, class Make>
void damage_everything(Make&& make) {
  std::mt19937 random(11);
  for (const TreeForm form : kTreeForms) {
    const auto tree = make_tree<V>(Shape::random, 60, make);
    const std::string whole = written(tree, form);
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      CHECK_FALSE(read_tree<V>(whole.substr(0, cut)));
      // Also where the header was changed to fit.
      std::string fitted = whole.substr(0, cut);
      if (cut >= kTreeHeaderBytes) {
        put_fixed(fitted.data() + 24, std::uint64_t{cut});
        CHECK_CODE(read_tree<V>(fitted), Code::corrupt);
        read_all<V>(fitted);
      }
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const unsigned change : {1U, 0x80U, 0xFFU, 1U + static_cast<unsigned>(random() % 255)}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ change);
        read_all<V>(changed);
      }
    }
  }
}

TEST_CASE("a tree that is cut or changed anywhere is refused or is another tree, and nothing is read outside it") {
  damage_everything<std::uint32_t>([](std::uint32_t i) { return i % 5; });
  damage_everything<std::uint64_t>([](std::uint32_t i) { return std::uint64_t{i} << 33; });
  damage_everything<std::string>([](std::uint32_t i) { return std::string(i % 9, 'v') + std::to_string(i); });
  damage_everything<std::string>([](std::uint32_t i) { return std::string(i % 3, 'v'); });
}

TEST_CASE("a header that promises more than there is takes no memory") {
  for (const TreeForm form : kTreeForms) {
    std::string bytes(kTreeHeaderBytes + 100, '\xFF');
    for (const std::uint64_t nodes : {std::uint64_t{200}, kTreeNodesMax, kTreeNodesMax + 1, ~std::uint64_t{0}}) {
      for (const bool dictionary : {true, false}) {
        put_tree_header(bytes.data(), {form, TreeValue<std::uint32_t>::kKind, dictionary, nodes, dictionary ? 1 : nodes,
                                       bytes.size()});
        CHECK_CODE(read_tree<std::uint32_t>(bytes), Code::corrupt);
      }
    }
  }
}

TEST_CASE("what is no tree, of a newer version, or of other values is told apart") {
  const auto tree = make_tree<std::uint32_t>(Shape::balanced, 3, [](std::uint32_t i) { return i; });
  std::string bytes = written(tree, TreeForm::compact);
  CHECK_CODE(read_tree<std::uint32_t>("no tree"), Code::corrupt);
  CHECK_CODE(read_tree<std::int32_t>(bytes), Code::invalid_argument);
  CHECK_CODE(TreeImage<std::uint32_t>::open(bytes), Code::corrupt);
  bytes[4] = 2;
  CHECK_CODE(read_tree<std::uint32_t>(bytes), Code::unsupported);
}

TEST_CASE("a node that two others claim, or none, is damage that a look at the whole finds") {
  const auto tree = make_tree<std::uint32_t>(Shape::balanced, 7, [](std::uint32_t i) { return i; });
  const std::string whole = written(tree, TreeForm::in_place);
  const auto with_word = [&](std::uint32_t node, std::uint32_t word) {
    std::string changed = whole;
    put_fixed(changed.data() + kTreeHeaderBytes + 4 * node, word);
    return changed;
  };
  const std::uint32_t left = tree_parts::RecordStructure::kHasLeft;
  for (const std::string& changed : {with_word(0, left | 5), with_word(0, left), with_word(0, 4), with_word(6, left),
                                     with_word(6, 5), with_word(1, left | 2), with_word(3, 7)}) {
    const auto image = TreeImage<std::uint32_t>::open(changed);
    REQUIRE_OK(image);
    CHECK_CODE(image->verify(), Code::corrupt);
    CHECK_CODE(read_tree<std::uint32_t>(changed), Code::corrupt);
  }
}

}  // namespace
}  // namespace kvingest::codec
