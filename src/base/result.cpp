#include "kvingest/result.hpp"

#include <cerrno>
#include <system_error>

namespace kvingest {

std::string_view to_string(Code code) noexcept {
  switch (code) {
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::too_large:
      return "too_large";
    case Code::unsupported:
      return "unsupported";
    case Code::busy:
      return "busy";
    case Code::no_space:
      return "no_space";
    case Code::corrupt:
      return "corrupt";
    case Code::io_error:
      return "io_error";
    case Code::locked:
      return "locked";
    case Code::failed:
      return "failed";
  }
  return "unknown";
}

Error errno_error(int sys_errno, std::string text) {
  Code code = Code::io_error;
  if (sys_errno == ENOSPC || sys_errno == EDQUOT || sys_errno == EFBIG) code = Code::no_space;
  if (sys_errno == EWOULDBLOCK) code = Code::busy;
  return Error{code, sys_errno, std::move(text) + ": " + std::generic_category().message(sys_errno)};
}

}  // namespace kvingest
