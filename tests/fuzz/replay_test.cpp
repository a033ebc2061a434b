// Every input that is kept for a fuzz target, as it is and cut at every byte, through the function that libFuzzer
// calls.
#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {
namespace {

constexpr std::size_t kCutsMax = 512;  // Of one input.

std::vector<std::filesystem::path> kept_inputs() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(KVINGEST_FUZZ_CORPUS)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

void run(std::string_view input) {
  const std::vector<std::uint8_t> own(input.begin(), input.end());  // Its end is the end of the memory: for sanitizers.
  LLVMFuzzerTestOneInput(own.data(), own.size());
}

TEST_CASE("every input that is kept is taken, whole and cut") {
  const auto paths = kept_inputs();
  REQUIRE(paths.size() >= 5);
  for (const auto& path : paths) {
    INFO(path.native());
    const std::string input = file_text(path);
    run(input);
    for (std::size_t bytes = 0; bytes < std::min(input.size(), kCutsMax); ++bytes)
      run(std::string_view(input).substr(0, bytes));
    SUCCEED();
  }
}

}  // namespace
}  // namespace kvingest::test
