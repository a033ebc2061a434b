#include "storage/marker.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace kvingest {
namespace {

constexpr std::string_view kMarkerMagic = "kvingest store ";
constexpr std::uint32_t kMarkerVersion = 1;
constexpr std::string_view kChecksum = "checksum ";
constexpr std::size_t kChecksumLineBytes = kChecksum.size() + 16 + 1;

std::string checksum_line(std::string_view text) {
  return fmt::format("{}{:016x}\n", kChecksum, XXH3_64bits(text.data(), text.size()));
}

bool is_label_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

// A value on one line: control bytes and the backslash as \xNN, the rest as it is.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '\\') {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", byte);
    } else {
      text.push_back(c);
    }
  }
  return text;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string value;
  while (!text.empty()) {
    if (text.front() != '\\') {
      value.push_back(text.front());
      text.remove_prefix(1);
      continue;
    }
    unsigned byte = 0;
    if (text.size() < 4 || text[1] != 'x') return std::nullopt;
    if (std::from_chars(text.data() + 2, text.data() + 4, byte, 16).ptr != text.data() + 4) return std::nullopt;
    value.push_back(static_cast<char>(byte));
    text.remove_prefix(4);
  }
  return value;
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool read_label(std::string_view text, Marker& marker) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || !is_label_name(text.substr(0, space))) return false;
  auto value = unescaped(text.substr(space + 1));
  return value && marker.labels.emplace(text.substr(0, space), std::move(*value)).second;
}

bool read_line(std::string_view line, Marker& marker) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, space);
  const std::string_view value = line.substr(space + 1);
  if (name == "engine") return marker.engine = value, !value.empty();
  if (name == "created") return marker.created = value, true;
  if (name == "label") return read_label(value, marker);
  if (name == "state") return marker.ready = value == "ready", marker.ready || value == "creating";
  if (name != "format") return false;
  const auto version = number(value);
  marker.format_version = version.value_or(0);
  return version.has_value();
}

// The first line; which version of the marker's own format follows is looked at before anything else.
Result<void> check_magic(std::string_view text, std::string_view path) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto version = line.starts_with(kMarkerMagic) ? number(line.substr(kMarkerMagic.size())) : std::nullopt;
  if (!version) return fail(Code::corrupt, "{}: does not begin like the marker of a store", path);
  if (*version > kMarkerVersion) {
    return fail(Code::unsupported, "{}: marker format {} is newer than this kvingest reads ({}); use a newer kvingest",
                path, *version, kMarkerVersion);
  }
  return {};
}

}  // namespace

Result<std::string> encode_marker(const Marker& marker) {
  std::string text =
      fmt::format("{}{}\nengine {}\nformat {}\ncreated {}\nstate {}\n", kMarkerMagic, kMarkerVersion, marker.engine,
                  marker.format_version, marker.created, marker.ready ? "ready" : "creating");
  for (const auto& [name, value] : marker.labels) {
    if (!is_label_name(name)) return fail(Code::invalid_argument, "'{}' cannot name a label of a store", name);
    fmt::format_to(std::back_inserter(text), "label {} {}\n", name, escaped(value));
  }
  if (text.size() + kChecksumLineBytes > kMarkerBytesMax) {
    return fail(Code::too_large, "the labels of a store take {} bytes; at most {}", text.size(), kMarkerBytesMax);
  }
  return text + checksum_line(text);
}

Result<Marker> decode_marker(std::string_view text, std::string_view path) {
  KV_TRY(check_magic(text, path));
  const std::size_t body_bytes = text.size() < kChecksumLineBytes ? 0 : text.size() - kChecksumLineBytes;
  std::string_view body = text.substr(0, body_bytes);
  if (body.empty() || text.substr(body_bytes) != checksum_line(body)) {
    return fail(Code::corrupt, "{}: its checksum does not match: damaged, or edited by hand", path);
  }
  Marker marker;
  body.remove_prefix(body.find('\n') + 1);
  while (!body.empty()) {
    const std::size_t end = body.find('\n');
    const std::string_view line = body.substr(0, end);
    if (end == std::string_view::npos || !read_line(line, marker)) {
      return fail(Code::corrupt, "{}: cannot understand the line '{}'", path, line);
    }
    body.remove_prefix(end + 1);
  }
  if (marker.engine.empty()) return fail(Code::corrupt, "{}: names no engine", path);
  return marker;
}

Result<std::optional<Marker>> find_marker(const Posix& posix, const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / kMarkerName;
  auto text = read_file(posix, path, kMarkerBytesMax);
  const int error = text ? 0 : text.error().sys_errno;
  if (error == ENOENT || error == ENOTDIR) return std::optional<Marker>();
  KV_TRY(text);
  auto marker = decode_marker(*text, path.native());
  KV_TRY(marker);
  return std::optional<Marker>(std::move(*marker));
}

Result<void> write_marker(const Posix& posix, const std::filesystem::path& dir, const Marker& marker) {
  auto text = encode_marker(marker);
  KV_TRY(text);
  return replace_file(posix, dir / kMarkerName, *text);
}

Result<Marker> read_marker(const std::filesystem::path& dir) {
  auto marker = find_marker(Posix::real(), dir);
  KV_TRY(marker);
  if (*marker) return std::move(**marker);
  std::error_code ignored;
  const bool there = std::filesystem::exists(dir, ignored);
  return fail(Code::invalid_argument, "no store in {}{}", dir.native(), there ? "" : ": there is no such directory");
}

}  // namespace kvingest
