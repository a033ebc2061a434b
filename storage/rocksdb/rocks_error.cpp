#include "storage/rocksdb/rocks_error.hpp"

namespace kvingest::rocks {
namespace {

Code code_of(const rocksdb::Status& status) {
  if (is_no_space(status)) return Code::no_space;
  switch (status.code()) {
    case rocksdb::Status::kCorruption:
      return Code::corrupt;
    case rocksdb::Status::kNotSupported:
      return Code::unsupported;
    case rocksdb::Status::kInvalidArgument:
      return Code::invalid_argument;
    case rocksdb::Status::kIncomplete:  // The write would have had to wait.
    case rocksdb::Status::kBusy:
    case rocksdb::Status::kTimedOut:
    case rocksdb::Status::kTryAgain:
      return Code::busy;
    default:
      return Code::io_error;
  }
}

}  // namespace

bool is_no_space(const rocksdb::Status& status) {
  return status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit;
}

Error to_error(const rocksdb::Status& status, std::string doing) {
  return Error{code_of(status), 0, std::move(doing) + ": " + status.ToString()};
}

}  // namespace kvingest::rocks
