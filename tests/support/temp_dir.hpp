// temp_dir.hpp -- a directory of its own for a test, removed with everything in it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvingest::test {

class TempDir {
 public:
  /// Makes a new directory under the system's temporary directory. Throws when it cannot.
  TempDir() : TempDir(std::filesystem::temp_directory_path()) {}
  /// Makes it under `parent`.
  explicit TempDir(const std::filesystem::path& parent);
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The whole content of a file; empty when there is none.
[[nodiscard]] std::string file_text(const std::filesystem::path& path);
/// Replaces or creates a file. Throws when it cannot.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace kvingest::test
