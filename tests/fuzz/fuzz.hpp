// fuzz.hpp -- what the fuzz targets share: the one function that libFuzzer calls, and a way to stop where something
// that must hold does not.
//
// Each target is one file with one LLVMFuzzerTestOneInput(); libFuzzer links it to find inputs (`./dev fuzz`), and
// replay_test.cpp to run all inputs that are kept.
//
// Threads: one.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/check.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace kvingest::fuzz {

inline std::string_view view_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A directory of this process, for targets that read files. In memory where there is such a place.
inline const std::filesystem::path& scratch_dir() {
  struct Dir {
    Dir() {
      std::error_code ignored;
      const bool in_memory = std::filesystem::is_directory("/dev/shm", ignored);
      const std::filesystem::path parent = in_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
      path = parent / ("kvingest-fuzz-" + std::to_string(::getpid()));
      std::filesystem::create_directories(path);
    }
    ~Dir() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::filesystem::path path;
  };
  static const Dir instance;
  return instance.path;
}

}  // namespace kvingest::fuzz
