#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "feed/line_source.hpp"

namespace kvingest::feed {
namespace {

constexpr std::string_view kPlace = "{n}";
/// Lines up to this size are copied as one block of this size, which costs less than a copy of the exact size. Both the
/// line's image and the chunk have room for it.
constexpr std::size_t kBlockBytes = 64;

/// A feed must outrun what it feeds, and formatting a number costs more than sending it. So the line is kept as an
/// image whose last digit is the only thing that changes from line to line; the image itself changes every ten lines.
/// (Changing the image each time would be simpler, but a load of bytes that were just stored in part has to wait for
/// the store.)
class NumberedLines final : public LineSource {
 public:
  NumberedLines(std::string_view message, std::uint64_t count) : count_(count) {
    for (;;) {
      const std::size_t place = message.find(kPlace);
      literals_.emplace_back(message.substr(0, place));
      if (place == std::string_view::npos) break;
      message.remove_prefix(place + kPlace.size());
    }
    make_image();
  }

  Result<Chunk> next(std::uint64_t lines_max) override {
    const std::uint64_t fit = std::max<std::uint64_t>(1, kChunkBytes / image_bytes_);
    const std::uint64_t lines = std::min({lines_max, count_ - number_, fit});
    const std::size_t digits_more = digits(number_ + lines) - digits(number_);
    chunk_.resize(lines * (image_bytes_ + places_.size() * digits_more) + kBlockBytes);
    char* to = chunk_.data();
    for (std::uint64_t i = 0; i < lines; ++i) to = append_line(to);
    return Chunk{{chunk_.data(), static_cast<std::size_t>(to - chunk_.data())}, lines};
  }

 private:
  static std::size_t digits(std::uint64_t number) { return std::to_string(number).size(); }

  char* append_line(char* to) {
    if (image_bytes_ <= kBlockBytes)
      std::memcpy(to, image_.data(), kBlockBytes);
    else
      std::memcpy(to, image_.data(), image_bytes_);
    for (const std::size_t place : places_) to[place] = ones_;
    to += image_bytes_;
    ++number_;
    if (ones_++ == '9') carry();
    return to;
  }

  /// The image of the next ten lines: 19 -> 20, 99 -> 100.
  void carry() {
    ones_ = '0';
    if (number_ == longer_at_) {
      longer_at_ *= 10;
      make_image();
      return;
    }
    for (const std::size_t place : places_) {
      char* digit = &image_[place - 1];
      while (*digit == '9') *digit-- = '0';
      ++*digit;
    }
  }

  void make_image() {
    const std::string number = std::to_string(number_);
    std::string line;
    places_.clear();
    for (std::size_t i = 0; i < literals_.size(); ++i) {
      if (i > 0) {
        line += number;
        places_.push_back(line.size() - 1);
      }
      line += literals_[i];
    }
    line += '\n';
    image_bytes_ = line.size();
    image_.assign(line.begin(), line.end());
    image_.resize(std::max(image_bytes_, kBlockBytes));
  }

  std::vector<std::string> literals_;  ///< What stands before, between and after the places of the number.
  std::vector<char> image_;            ///< The line of number_; its last digits are stale, ones_ holds the true one.
  std::size_t image_bytes_ = 0;
  std::vector<std::size_t> places_;  ///< Where in the image the last digit of each number stands.
  std::vector<char> chunk_;
  std::uint64_t number_ = 0;
  char ones_ = '0';               ///< The last digit of number_.
  std::uint64_t longer_at_ = 10;  ///< The next number that has one more digit.
  std::uint64_t count_;
};

}  // namespace

std::unique_ptr<LineSource> numbered_lines(std::string_view message, std::uint64_t count, ControlLike control_like) {
  const bool marked = control_like == ControlLike::escape && looks_like_control(message).value_or(false);
  return std::make_unique<NumberedLines>(marked ? "!" + std::string(message) : message, count);
}

}  // namespace kvingest::feed
