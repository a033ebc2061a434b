// kvingest/ledger.hpp -- what kvingest keeps about a store inside it: entries of the meta space, written in the same
// atomic batch as the records they speak of.
//
//   key               value
//   seq               u64: the last arrival number given
//   columns           text: the columns that a csv header named, as one csv line
//   convert           how far an unfinished conversion into this store came (src/query/convert.hpp)
//   source/NAME       SourceRecord: progress and lifetime totals of a source; unnamed feeds share the name "@"
//   removed           RemovedTotals: records that were stored and have been taken away
//   held              HeldBytes: what retention counts
//   time/NUMBER       u64: when, in ns since the epoch, all records up to the number had arrived; NUMBER as below
//   rejects           RejectTotals
//   reject/NUMBER     RejectRecord; NUMBER is 8 bytes, big-endian, from 1 in the order of rejection
//
// Integers are little-endian; texts have a varint length in front. Every value begins with one format byte, 1, of
// `removed` 2.
//
// Threads: functions without state. Errors: a value that cannot be decoded is corrupt, and the text names its key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest {

inline constexpr std::string_view kMetaSeq = "seq";
inline constexpr std::string_view kMetaColumns = "columns";
inline constexpr std::string_view kMetaConversion = "convert";
inline constexpr std::string_view kMetaRemoved = "removed";
inline constexpr std::string_view kMetaHeld = "held";
inline constexpr std::string_view kMetaTimes = "time/";
inline constexpr std::string_view kMetaSources = "source/";
inline constexpr std::string_view kMetaRejectTotals = "rejects";
inline constexpr std::string_view kMetaRejects = "reject/";
/// The source of every connection that gives no name; a peer's name never begins with '@'.
inline constexpr std::string_view kUnnamedSource = "@";
/// What Redis clients write counts under this one.
inline constexpr std::string_view kRespSource = "@resp";

/// Classes of messages. Each is counted where it arises and none is computed from another:
/// received = stored + rejected + blank + duplicate + what is still on its way.
struct Tally {
  std::uint64_t received = 0;
  std::uint64_t stored = 0;     ///< Puts, also of a key that exists.
  std::uint64_t rejected = 0;   ///< Could not become a record; kept in the meta space.
  std::uint64_t blank = 0;      ///< Held nothing to store: empty lines, csv headers.
  std::uint64_t duplicate = 0;  ///< Sent again, or sent by an older connection of the same source.

  Tally& operator+=(const Tally& other) noexcept;
  bool operator==(const Tally&) const = default;
};

struct SourceRecord {
  std::uint64_t line = 0;  ///< The last message of a named source that is in the store; `next` is this plus 1.
  Tally total;             ///< Over the store's lifetime.
  std::string columns;     ///< Of a named csv source with a header: its columns as one csv line.

  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static Result<SourceRecord> decode(std::string_view bytes);
};

struct RejectTotals {
  std::uint64_t last_number = 0;  ///< Of the newest reject.
  std::uint64_t kept_bytes = 0;   ///< Raw bytes held by the entries that exist now.
  std::uint64_t unkept = 0;       ///< Rejects whose bytes were not kept because --rejects-max was reached.

  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static Result<RejectTotals> decode(std::string_view bytes);
};

/// Records that were stored and are no more.
struct RemovedTotals {
  std::uint64_t erased = 0;      ///< By kvq delete and over RESP.
  std::uint64_t expired = 0;     ///< By --retain-bytes and --retain-age.
  std::uint64_t unnumbered = 0;  ///< Of those erased: keys without the number that the key template makes.

  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static Result<RemovedTotals> decode(std::string_view bytes);
};

/// Bytes of all keys and values, as of a number. Where `seq` is not the last number given, the count is stale.
struct HeldBytes {
  std::uint64_t seq = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static Result<HeldBytes> decode(std::string_view encoded);
};

/// A message that could not become a record.
struct RejectRecord {
  std::string peer;            ///< "127.0.0.1:40123".
  std::string source;          ///< Name of the source, "@" for unnamed connections.
  std::uint64_t line = 0;      ///< Number of the message in its connection or source, from 1.
  std::uint64_t offset = 0;    ///< Of the message's first byte in the connection's stream.
  std::string reason;          ///< A token a program can compare: "too_long", "missing_field".
  std::string detail;          ///< For people: "no column named price".
  std::uint64_t length = 0;    ///< Bytes of the message; more than `bytes` holds where it was too long.
  std::uint64_t checksum = 0;  ///< XXH3 (64 bits) of the whole message.
  std::string bytes;           ///< The message as it came; of a too long one the first 64 KiB.

  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static Result<RejectRecord> decode(std::string_view encoded);
};

[[nodiscard]] std::string source_key(std::string_view name);
[[nodiscard]] std::string reject_key(std::uint64_t number);

[[nodiscard]] std::string time_key(std::uint64_t number);

[[nodiscard]] std::string encode_number(std::uint64_t number);
/// `key` is for the message.
[[nodiscard]] Result<std::uint64_t> decode_number(std::string_view bytes, std::string_view key);
[[nodiscard]] inline std::string encode_seq(std::uint64_t seq) {
  return encode_number(seq);
}
[[nodiscard]] inline Result<std::uint64_t> decode_seq(std::string_view bytes) {
  return decode_number(bytes, kMetaSeq);
}

[[nodiscard]] std::string encode_columns(std::string_view columns);
[[nodiscard]] Result<std::string> decode_columns(std::string_view bytes);

}  // namespace kvingest
