// page_checker.hpp -- holds the pages of a data file against each other, without LMDB.
//
// LMDB has no checksums and trusts what it reads: a damaged page is a failed assertion or a wild pointer. So this reads
// the file by itself, with pread, from the header of one transaction down: every page is where it says it is, used once
// and of the right kind; every entry lies within its page; keys rise and stay between those of the branch above; the
// counts are those of the header; the free list names no page that is in use. What it cannot see is a changed byte in a
// value or one that keeps a key in its place.
//
// Layout (LMDB's MDB_DATA_VERSION 1, integers of the host's byte order):
//
//   page       u64 number, u16 pad, u16 flags, u16 end of the offsets, u16 begin of the entries (overflow: u32 pages),
//              then u16 offsets of the entries, which are packed towards the end
//   entry      u16 + u16 size of the value, u16 flags, u16 size of the key, key, value
//              (branch: 48 bits of child page number in place of size and flags, no value)
//   tree       u32 pad, u16 flags, u16 depth, u64 branch, leaf and overflow pages, entries, root page
//   header     in pages 0 and 1, behind 16 bytes: u32 magic, u32 version, u64 address, u64 map size, the tree of free
//              pages, the tree of names, u64 last page, u64 transaction; transaction N is in page N & 1
//
// Threads:  any.
// Lifetime: a read transaction of the same number is held while it runs, so that no page is used again meanwhile.
#pragma once

#include <cstdint>

#include "base/posix.hpp"

namespace kvingest::lmdb {

struct PageReport {
  std::uint64_t records = 0;        ///< Entries of the database "records".
  std::uint64_t bytes_checked = 0;  ///< Of all pages read.
};

/// How much is read.
enum class CheckDepth {
  roots,  ///< The header, the tree of names and the root of each database: a few pages.
  all,
};

/// Checks that both headers are plausible, so that LMDB can open the file at all. Fails with: corrupt, io_error.
Result<void> check_headers(const File& data);

/// Checks transaction `txn_id` of the data file.
/// Fails with: corrupt (the text names the page and its offset), busy (a later transaction is taking its header: begin
/// a new one), io_error.
Result<PageReport> check_pages(const File& data, std::uint64_t page_bytes, std::uint64_t txn_id, CheckDepth depth);

}  // namespace kvingest::lmdb
