// tokens.hpp -- who may connect: the tokens of --token-file, which is read again when it changes (SIGHUP).
//
// A line each: `NAME ro|rw TOKEN`; empty lines and lines that begin with # mean nothing. Tokens are compared by their
// SHA-256 digests, all of them and each to its end, so that the time it takes says nothing of a token. The digests are
// all that is kept.
//
// Threads:  find() on any thread, also while load() replaces the tokens. Who has been let in stays in.
// Errors:   a file that cannot be read, or that is wrong in a line, changes nothing.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest::net {

struct TokenOwner {
  std::string name;
  bool writes = false;  ///< rw
};

class TokenBook {
 public:
  /// Reads the file and replaces what was there.
  /// Fails with: io_error, invalid_argument (naming the line).
  Result<void> load(const std::filesystem::path& file);

  /// Whose token it is; where `name` is given, only that one's.
  [[nodiscard]] std::optional<TokenOwner> find(std::string_view token,
                                               std::optional<std::string_view> name = std::nullopt) const;
  [[nodiscard]] std::size_t size() const;

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    TokenOwner owner;
    Digest digest;
  };
  using Entries = std::vector<Entry>;

  static Result<Entries> parse(std::string_view text, const std::string& file);

  mutable std::mutex mutex_;
  std::shared_ptr<const Entries> entries_ = std::make_shared<const Entries>();  // Shared with find() while it looks.
};

}  // namespace kvingest::net
