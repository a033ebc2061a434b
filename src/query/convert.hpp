// convert.hpp -- all of a store, its meta space included, into a new store of any engine.
//
// The copy goes page by page. Until it is complete, the target's meta space holds how far it came, in the batch that
// brought it there: a conversion that was interrupted goes on from that key when it is started again. At the end both
// stores are read once more and compared by a digest that does not depend on order.
//
// Threads: one. The source is not to change meanwhile; if it does, the digests differ and the copy stays incomplete.
#pragma once

#include <cstdint>
#include <functional>

#include "query/opened_store.hpp"

namespace kvingest::query {

/// Called after each page with the entries done so far; a failure ends the work with it.
using GoOn = std::function<Result<void>(std::uint64_t entries)>;

struct Digest {
  std::uint64_t entries = 0;
  std::uint64_t sum = 0;  ///< Of the XXH3 (64 bits) of every space, key and value, modulo 2^64.

  bool operator==(const Digest&) const = default;
};

/// Of every record and every meta entry, but for the mark of an unfinished conversion.
/// Fails with: what scan() and `go_on` fail with.
[[nodiscard]] Result<Digest> digest_of(const Store& store, const GoOn& go_on);

struct ConvertReport {
  bool resumed = false;
  std::uint64_t copied = 0;  ///< Entries copied by this run.
  Digest digest;             ///< Of both stores.
};

/// Makes `target`, which is new or holds an unfinished conversion, a copy of `source`. On disk when this returns.
/// Fails with: invalid_argument (the target holds something else, the source is itself unfinished), corrupt (the
/// digests differ), what stores and `go_on` fail with.
[[nodiscard]] Result<ConvertReport> convert(const Store& source, Store& target, const GoOn& go_on);

}  // namespace kvingest::query
