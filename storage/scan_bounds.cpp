#include "storage/scan_bounds.hpp"

namespace kvingest {
namespace {

// The smallest key that is not below a bound longer than any key; empty if there is none. Such a bound stands right
// behind its own first kKeyBytesMax bytes, so that it is the next key behind those.
std::string next_key(std::string_view long_bound) {
  std::string key(long_bound.substr(0, kKeyBytesMax));
  while (!key.empty() && static_cast<unsigned char>(key.back()) == 0xFF) key.pop_back();
  if (!key.empty()) key.back() = static_cast<char>(static_cast<unsigned char>(key.back()) + 1);
  return key;
}

}  // namespace

ScanBounds::ScanBounds(const Range& range) : range_(range) {
  bool nothing = range.last && range.last->empty();
  if (range_.first && range_.first->empty()) range_.first.reset();
  if (range_.first && range_.first->size() > kKeyBytesMax) {
    first_ = next_key(*range_.first);
    nothing = nothing || first_.empty();
    range_.first = first_;
  }
  if (range_.last && range_.last->size() > kKeyBytesMax) {
    last_ = next_key(*range_.last);
    if (last_.empty()) {
      range_.last.reset();
    } else {
      range_.last = last_;
    }
  }
  if (nothing || (range_.first && range_.last && *range_.first >= *range_.last)) {
    range_ = Range{.reverse = range.reverse, .limit = 0};
  }
}

}  // namespace kvingest
