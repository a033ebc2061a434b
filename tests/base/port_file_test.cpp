#include "base/port_file.hpp"

#include <filesystem>
#include <iterator>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest {
namespace {

TEST_CASE("a port file holds a line for each listener and leaves nothing beside it") {
  const test::TempDir dir;
  const std::filesystem::path path = dir / "ports";
  const ListenerPlace places[] = {{"feed", "127.0.0.1:40123"}, {"resp", "[::1]:6379"}};
  REQUIRE(write_port_file(path, places));
  REQUIRE(write_port_file(path, places));
  CHECK(test::file_text(path) == "feed 127.0.0.1:40123\nresp [::1]:6379\n");
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("a port file that cannot be written is an error that names it") {
  const auto done = write_port_file("/no/such/place/ports", {});
  REQUIRE_FALSE(done);
  CHECK(done.error().text.find("/no/such/place/ports") != std::string::npos);
}

}  // namespace
}  // namespace kvingest
