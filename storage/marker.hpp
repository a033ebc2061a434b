// marker.hpp -- the file STORE, which says what a store directory holds. Text, so that people can read it; checksummed,
// so that nobody edits it. storage/FORMAT.md has an example.
//
// Threads: the functions may be called on any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/posix.hpp"
#include "kvingest/engine.hpp"

namespace kvingest {

inline constexpr std::string_view kMarkerName = "STORE";
inline constexpr std::size_t kMarkerBytesMax = std::size_t{1} << 20;  // Labels hold column lists, not data.

/// Fails with: invalid_argument (a label's name is empty or not of letters, digits and "._-"), too_large.
[[nodiscard]] Result<std::string> encode_marker(const Marker& marker);

/// Fails with: corrupt, unsupported (of a newer kvingest). `path` is for the messages.
[[nodiscard]] Result<Marker> decode_marker(std::string_view text, std::string_view path);

/// The marker in `dir`; nullopt where there is none, also where there is no such directory.
/// Fails with: corrupt, unsupported, io_error.
[[nodiscard]] Result<std::optional<Marker>> find_marker(const Posix& posix, const std::filesystem::path& dir);

/// Replaces the marker in `dir`, durably and in one step. Fails with: no_space, io_error, and like encode_marker().
Result<void> write_marker(const Posix& posix, const std::filesystem::path& dir, const Marker& marker);

}  // namespace kvingest
