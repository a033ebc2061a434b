#include "query/output.hpp"

#include <unistd.h>

#include <cerrno>

namespace kvingest::query {

Result<void> Output::flush() {
  std::string_view rest = text_;
  while (wanted_ && !rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) {
      wanted_ = false;
    } else if (written < 0) {
      return fail(errno, "write the results");
    } else {
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  text_.clear();
  return {};
}

bool Output::is_terminal() const noexcept {
  return ::isatty(fd_) == 1;
}

}  // namespace kvingest::query
