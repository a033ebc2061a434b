#include "storage/lmdb/lmdb_error.hpp"

#include <lmdb.h>

#include <cerrno>

namespace kvingest::lmdb {
namespace {

Code code_of(int rc) noexcept {
  switch (rc) {
    case MDB_MAP_FULL:
      return Code::no_space;
    case MDB_READERS_FULL:
      return Code::busy;
    case MDB_BAD_VALSIZE:
      return Code::invalid_argument;
    case MDB_TXN_FULL:
      return Code::too_large;
    case MDB_NOTFOUND:  // Of something that every store of ours has.
    case MDB_PAGE_NOTFOUND:
    case MDB_CORRUPTED:
    case MDB_INVALID:
    case MDB_INCOMPATIBLE:
      return Code::corrupt;
    case MDB_VERSION_MISMATCH:
      return Code::unsupported;
    case MDB_PANIC:
      return Code::failed;
    default:
      return Code::io_error;
  }
}

}  // namespace

Error to_error(int rc, std::string doing) {
  if (rc == ENOMEM) return Error{Code::busy, rc, std::move(doing) + ": out of memory"};  // LMDB undoes what it began.
  if (rc > 0) return errno_error(rc, std::move(doing));
  return Error{code_of(rc), 0, std::move(doing) + ": " + mdb_strerror(rc)};
}

}  // namespace kvingest::lmdb
