// long_message.hpp -- a message beyond the limit: its first bytes, its length and its checksum, in bounded memory.
//
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kvingest::net {

inline constexpr std::size_t kLongMessageKeptBytes = 64 << 10;

struct LongMessage {
  std::string_view kept;       ///< Its first bytes, at most kLongMessageKeptBytes.
  std::uint64_t length = 0;    ///< Of the whole message.
  std::uint64_t checksum = 0;  ///< XXH3 (64 bits) of the whole message.
};

/// A message that is at hand as a whole.
[[nodiscard]] LongMessage whole_long_message(std::string_view message) noexcept;

/// One that comes in pieces.
class LongMessageBuilder {
 public:
  LongMessageBuilder();
  LongMessageBuilder(const LongMessageBuilder&) = delete;
  LongMessageBuilder& operator=(const LongMessageBuilder&) = delete;
  ~LongMessageBuilder();

  [[nodiscard]] bool active() const noexcept { return checksum_ != nullptr; }
  void begin(std::string first);
  void extend(std::string_view bytes);
  /// Valid until forget().
  [[nodiscard]] LongMessage finish() const noexcept;
  void forget();

  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }
  [[nodiscard]] std::size_t kept_bytes() const noexcept { return kept_.size(); }

 private:
  struct Checksum;

  std::string kept_;
  std::uint64_t length_ = 0;
  std::unique_ptr<Checksum> checksum_;
};

/// Empties a buffer that keeps at most a page, so that an idle connection costs no more.
void forget(std::string& buffer);

}  // namespace kvingest::net
