#include "base/port_file.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

TEST_CASE("a port file holds a line for each listener and leaves nothing beside it") {
  std::string dir = (std::filesystem::temp_directory_path() / "kvingest-port-XXXXXX").string();
  REQUIRE(::mkdtemp(dir.data()) != nullptr);
  const std::filesystem::path path = std::filesystem::path(dir) / "ports";
  const ListenerPlace places[] = {{"feed", "127.0.0.1:40123"}, {"resp", "[::1]:6379"}};
  REQUIRE(write_port_file(path, places));
  REQUIRE(write_port_file(path, places));
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  CHECK(content.str() == "feed 127.0.0.1:40123\nresp [::1]:6379\n");
  CHECK(std::distance(std::filesystem::directory_iterator(dir), {}) == 1);
  std::filesystem::remove_all(dir);
}

TEST_CASE("a port file that cannot be written is an error that names it") {
  const auto done = write_port_file("/no/such/place/ports", {});
  REQUIRE_FALSE(done);
  CHECK(done.error().text.find("/no/such/place/ports") != std::string::npos);
}

}  // namespace
}  // namespace kvingest
