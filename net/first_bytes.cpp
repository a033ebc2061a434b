#include "net/first_bytes.hpp"

#include <array>

namespace kvingest::net {
namespace {

/// How `bytes` stands to a pattern: it matches, it could with more bytes, or it cannot.
enum class Match : std::uint8_t { no, maybe, yes };

Match match_http(std::string_view bytes) noexcept {
  constexpr std::array<std::string_view, 6> kMethods = {"GET ", "POST ", "PUT ", "HEAD ", "OPTIONS ", "CONNECT "};
  constexpr std::string_view kVersion = " HTTP/1";
  bool maybe = false;
  for (const std::string_view method : kMethods) {
    if (!bytes.starts_with(method)) {
      maybe = maybe || method.starts_with(bytes);
      continue;
    }
    const std::string_view target = bytes.substr(method.size());
    const std::size_t end = target.find_first_of(" \t\r\n\v\f");
    if (end == std::string_view::npos) return bytes.size() < kFirstBytesMax ? Match::maybe : Match::no;
    if (end == 0) return Match::no;
    const std::string_view behind = target.substr(end);
    if (behind.starts_with(kVersion)) return Match::yes;
    return kVersion.starts_with(behind) ? Match::maybe : Match::no;
  }
  return maybe ? Match::maybe : Match::no;
}

/// A fixed sequence of byte ranges.
template <std::size_t N>
Match match_ranges(std::string_view bytes, const std::array<std::array<unsigned char, 2>, N>& ranges) noexcept {
  for (std::size_t i = 0; i < N; ++i) {
    if (i == bytes.size()) return Match::maybe;
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte < ranges[i][0] || byte > ranges[i][1]) return Match::no;
  }
  return Match::yes;
}

/// Who opens a negotiation offers (WILL) or asks (DO); a refusal (WON'T, DON'T) can only come behind one.
Match match_telnet(std::string_view bytes) noexcept {
  constexpr char kCommand = '\xFF';
  constexpr std::string_view kOpenings = "\xFB\xFD";
  if (bytes.empty()) return Match::maybe;
  if (bytes.front() != kCommand) return Match::no;
  if (bytes.size() == 1) return Match::maybe;
  return kOpenings.find(bytes[1]) != std::string_view::npos ? Match::yes : Match::no;
}

Match match_resp(std::string_view bytes) noexcept {
  constexpr std::string_view kEnd = "\r\n$";
  if (bytes.empty()) return Match::maybe;
  if (bytes.front() != '*') return Match::no;
  std::size_t at = 1;
  while (at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9') ++at;
  if (at == bytes.size()) return at < kFirstBytesMax ? Match::maybe : Match::no;
  if (at == 1) return Match::no;
  const std::string_view behind = bytes.substr(at);
  if (behind.starts_with(kEnd)) return Match::yes;
  return kEnd.starts_with(behind) ? Match::maybe : Match::no;
}

}  // namespace

FirstBytes recognize(std::string_view bytes) noexcept {
  constexpr std::array<std::array<unsigned char, 2>, 3> kTls = {{{0x16, 0x16}, {0x03, 0x03}, {0x00, 0x04}}};
  const Match http = match_http(bytes);
  const Match tls = match_ranges(bytes, kTls);
  const Match telnet = match_telnet(bytes);
  const Match resp = match_resp(bytes);
  if (http == Match::yes) return FirstBytes::http;
  if (tls == Match::yes) return FirstBytes::tls;
  if (telnet == Match::yes) return FirstBytes::telnet;
  if (resp == Match::yes) return FirstBytes::resp;
  const bool maybe = http == Match::maybe || tls == Match::maybe || telnet == Match::maybe || resp == Match::maybe;
  return maybe ? FirstBytes::undecided : FirstBytes::lines;
}

}  // namespace kvingest::net
