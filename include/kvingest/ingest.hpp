// kvingest/ingest.hpp -- where the network and the committer meet.
//
// A feed worker cuts bytes into messages, messages into records, and hands what one connection gave in one turn to the
// committer as a Parcel. The committer judges it, numbers it, writes it together with its source's progress in one
// atomic batch, and gives the same parcel back with the answer in it, so that its memory is used again.
//
// Threads:  a parcel belongs to one thread at a time: the worker, then the committer, then the worker again.
// Lifetime: an Inbox outlives every parcel that names it; the service stops the committer before the workers.
// Errors:   the outcome is in the parcel. Parcels of one connection come back in the order they were handed over.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvingest/ledger.hpp"
#include "kvingest/store.hpp"
#include "kvingest/write_batch.hpp"

namespace kvingest {

struct Parcel;

/// A worker's side: takes parcels back.
class Inbox {
 public:
  virtual ~Inbox() = default;
  /// Called on the committer's thread with parcels this worker handed over, answered; must not block.
  virtual void deliver(std::vector<std::unique_ptr<Parcel>> answered) = 0;
  /// The queue's byte budget has room again after ParcelSink::has_room() said no to this worker.
  virtual void room() = 0;
  /// A newer connection has said hello for the source of this worker's `connection`, which is to be closed.
  virtual void superseded(std::uint64_t connection) = 0;
  /// Commits are impossible for now, for `reason` ("no_space", "busy"), or, where it is empty, possible again.
  virtual void paused(std::string_view reason) = 0;
};

/// Records as they will be when all that is ahead in the queue is written. The committer's thread only.
class RecordView {
 public:
  RecordView() = default;
  RecordView(const RecordView&) = delete;
  RecordView& operator=(const RecordView&) = delete;
  virtual ~RecordView() = default;
  /// As Store::get().
  virtual Result<bool> get(std::string_view key, Store::ValueVisitor visit) const = 0;
  /// Every key, in any order, until the visitor returns false. Fails as Store::scan() does.
  virtual Result<void> keys(FunctionRef<bool(std::string_view key)> visit) const = 0;
};

/// What became of a request for changes, in records.
struct ChangeCounts {
  std::uint64_t put = 0;
  std::uint64_t not_put = 0;     ///< A condition did not hold.
  std::uint64_t erased = 0;      ///< That were there.
  std::uint64_t unnumbered = 0;  ///< Of them, those whose key holds no arrival number where the template makes one.
};

/// Changes that depend on what the store holds when their turn comes: the conditional writes of RESP.
class Changes {
 public:
  Changes() = default;
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;
  virtual ~Changes() = default;
  /// Called on the thread that builds the group, in the order of the queue: appends what is to change to `batch`, which
  /// `records` shows from then on, too. Called anew when the group could not be written.
  virtual ChangeCounts decide(const RecordView& records, WriteBatch& batch) = 0;
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;
};

/// Who sent a parcel: one connection, under one name. Shared by the connection and its parcels that are under way;
/// constant once they exist. A source belongs to the origin that said hello for it last.
struct Origin {
  std::string peer;              ///< "127.0.0.1:40123", for rejects and logs.
  std::string source;            ///< Name of the source, "@" for unnamed connections.
  std::uint64_t connection = 0;  ///< The worker's own number for the connection.
  Inbox* inbox = nullptr;        ///< Never null.

  [[nodiscard]] bool named() const noexcept { return source != kUnnamedSource; }
};

struct Parcel {
  enum class Outcome : std::uint8_t {
    pending,    ///< Not answered yet.
    committed,  ///< In the store at `level`.
    dropped,    ///< Of a connection that a newer one has taken over from: counted as duplicate.
    refused,    ///< A hello that is not welcome: `refusal` says why.
    failed,     ///< The store has failed; whether it holds the parcel is unknown.
    given_up,   ///< The service was to stop while the store took no writes: nothing of the parcel is stored.
    no_space,   ///< Of changes: the store takes no writes just now, and nothing was written.
  };

  // What the worker says.
  std::shared_ptr<const Origin> origin;
  WriteBatch batch;                  ///< Records without numbers.
  std::unique_ptr<Changes> changes;  ///< Instead of `batch`: of RESP. `tally.received` is the puts that are asked for.
  std::vector<RejectRecord> rejects;
  std::size_t rejects_bytes = 0;       ///< What they take in memory; see add_reject().
  Tally tally;                         ///< Of the messages in here.
  std::uint64_t last_line = 0;         ///< Number of the last message in here, in its connection or source.
  std::uint64_t bytes = 0;             ///< Taken from the socket for it.
  std::optional<std::string> columns;  ///< A csv header was read: to be kept with the source and for the store.
  std::uint64_t unterminated = 0;      ///< Of the messages: a last line without LF.
  bool hello = false;                  ///< Nothing but: the origin takes its source over from here on.
  bool sync = false;                   ///< All up to here must be on disk before it comes back.
  std::size_t charged_bytes = 0;       ///< What it was counted for in the queue's budget; the committer's.

  // What the committer answers.
  Outcome outcome = Outcome::pending;
  std::uint64_t on_disk_seq = 0;  ///< The store's last number on disk.
  Durability level = Durability::memory;
  std::uint64_t next_line = 0;  ///< Of a hello: the line the source is to send next. `columns` are its header's.
  std::string_view refusal;     ///< Of a refused hello: a fixed word, "too_many_sources".

  [[nodiscard]] bool empty() const noexcept { return tally.received == 0 && !sync && !hello; }
  void add_reject(RejectRecord reject) {
    rejects_bytes += sizeof reject + reject.bytes.size() + reject.detail.size() + reject.source.size();
    rejects.push_back(std::move(reject));
  }
  /// What it costs the queue's budget: also one that holds nothing but a sync takes memory until it is answered.
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return sizeof *this + batch.bytes().size() + rejects_bytes + (changes ? changes->memory_bytes() : 0);
  }
  /// Makes it a new one that keeps the memory of its batch.
  void clear() noexcept {
    WriteBatch kept = std::move(batch);
    kept.clear();
    *this = Parcel{};
    batch = std::move(kept);
  }
};

/// The service at one look, for `!kv status`.
struct FeedStatus {
  std::uint64_t received = 0;
  std::uint64_t pending = 0;
  std::uint64_t stored = 0;   ///< Sequence numbers, like the next two.
  std::uint64_t durable = 0;  ///< Survives what --durability names.
  std::uint64_t on_disk = 0;
  std::uint64_t queue_bytes = 0;
  /// Why reading rests: commits are impossible for now ("no_space", "busy"), or the queue is full ("store_slow").
  std::string paused;
  std::chrono::steady_clock::time_point paused_since{};
};

/// The committer's side, as workers see it.
class ParcelSink {
 public:
  virtual ~ParcelSink() = default;

  /// Takes a parcel. Where the level needs no sync and nothing waits, it is written on the spot and comes back
  /// answered; else null is returned and it comes back through its inbox.
  virtual std::unique_ptr<Parcel> submit(std::unique_ptr<Parcel> parcel) = 0;

  /// Whether a worker may read more. After a no, `inbox` is told when there is room.
  virtual bool has_room(Inbox& inbox) = 0;

  /// Tells `inbox` from now on when commits pause and go on.
  virtual void attach(Inbox& inbox) = 0;

  [[nodiscard]] virtual FeedStatus status() const = 0;

  /// Of memory engines: nothing is ever on disk, and a sync answers at once.
  [[nodiscard]] virtual bool persistent() const noexcept = 0;

  /// Counts messages and bytes as they are cut; called by workers while a parcel grows.
  virtual void count_received(std::uint64_t messages, std::uint64_t bytes) noexcept = 0;
};

}  // namespace kvingest
