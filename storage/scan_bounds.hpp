// scan_bounds.hpp -- a scan's bounds as engines want them: absent, or 1 to kKeyBytesMax bytes.
//
// Callers page with "the last key and a NUL byte", which may be one byte longer than a key, or with the empty string
// for "from the beginning". Both mean something; no engine has to think about them.
//
// Threads:  a value.
// Lifetime: range() points into the object and into the bounds it was made from.
#pragma once

#include <string>

#include "kvingest/store.hpp"

namespace kvingest {

class ScanBounds {
 public:
  explicit ScanBounds(const Range& range);
  ScanBounds(const ScanBounds&) = delete;
  ScanBounds& operator=(const ScanBounds&) = delete;

  [[nodiscard]] const Range& range() const noexcept { return range_; }

 private:
  Range range_;
  std::string first_;  // Where the given bound was too long.
  std::string last_;
};

}  // namespace kvingest
