// places.hpp -- where this build's programs and the project's files are.
//
// These paths are compiled into places.cpp alone: everything else is the same object in every folder, which lets a
// compiler cache serve several checkouts.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvingest::test {

/// The path of one of our programs in this build.
[[nodiscard]] std::string program(std::string_view name);
/// The project's top folder.
[[nodiscard]] std::filesystem::path project_folder();
/// The folder that this build was configured in.
[[nodiscard]] std::filesystem::path build_folder();

}  // namespace kvingest::test
