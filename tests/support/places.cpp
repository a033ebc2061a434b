#include "tests/support/places.hpp"

namespace kvingest::test {

std::string program(std::string_view name) {
  return (build_folder() / "bin" / name).string();
}

std::filesystem::path project_folder() {
  return KVINGEST_PROJECT_FOLDER;
}

std::filesystem::path build_folder() {
  return KVINGEST_BUILD_FOLDER;
}

}  // namespace kvingest::test
