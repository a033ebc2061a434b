#include "net/tokens.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

namespace kvingest::net {
namespace {

constexpr std::size_t kTokenBytesMin = 16;  // Shorter ones can be guessed.
constexpr std::size_t kTokensMax = 1'000;   // All are compared at each attempt.

std::array<unsigned char, 32> digest_of(std::string_view token) {
  std::array<unsigned char, 32> digest{};
  ::SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

bool is_plain_word(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

Result<TokenBook::Entries> TokenBook::parse(std::string_view text, const std::string& file) {
  Entries entries;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view name = take_word(line);
    if (name.empty() || name.front() == '#') continue;
    const std::string_view rights = take_word(line);
    const std::string_view token = take_word(line);
    // Never the line itself: it may hold a token.
    if (!is_plain_word(name) || (rights != "ro" && rights != "rw") || !take_word(line).empty()) {
      return fail(Code::invalid_argument, "{}: line {} is not NAME ro|rw TOKEN", file, number);
    }
    if (!is_plain_word(token) || token.size() < kTokenBytesMin) {
      return fail(Code::invalid_argument, "{}: line {}: a token is at least {} printable characters", file, number,
                  kTokenBytesMin);
    }
    entries.push_back({{std::string(name), rights == "rw"}, digest_of(token)});
  }
  if (entries.empty())
    return fail(Code::invalid_argument, "{}: there is no token in it, so nobody could connect", file);
  if (entries.size() > kTokensMax) {
    return fail(Code::invalid_argument, "{}: {} tokens, at most {}", file, entries.size(), kTokensMax);
  }
  return entries;
}

Result<void> TokenBook::load(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad()) return fail(errno != 0 ? errno : EIO, "read {}", file.native());
  auto entries = parse(text, file.native());
  KV_TRY(entries);
  auto fresh = std::make_shared<const Entries>(std::move(*entries));
  const std::lock_guard lock(mutex_);
  entries_ = std::move(fresh);
  return {};
}

std::optional<TokenOwner> TokenBook::find(std::string_view token, std::optional<std::string_view> name) const {
  std::shared_ptr<const Entries> entries;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_;
  }
  const Digest digest = digest_of(token);
  std::optional<TokenOwner> found;
  for (const Entry& entry : *entries) {
    const bool same = ::CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0;
    const bool named = !name || *name == entry.owner.name;
    if (same && named) found = entry.owner;
  }
  return found;
}

std::size_t TokenBook::size() const {
  const std::lock_guard lock(mutex_);
  return entries_->size();
}

}  // namespace kvingest::net
