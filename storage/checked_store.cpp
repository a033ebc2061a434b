#include "storage/checked_store.hpp"

#include <utility>

#include "base/check.hpp"
#include "kvingest/ledger.hpp"
#include "storage/scan_bounds.hpp"

namespace kvingest {
namespace {

// Asserts that there is one writer at a time.
class WriterMark {
 public:
  explicit WriterMark(std::atomic<bool>& writing) : writing_(writing) {
    KV_ASSERT(!writing_.exchange(true, std::memory_order_acquire));
  }
  WriterMark(const WriterMark&) = delete;
  WriterMark& operator=(const WriterMark&) = delete;
  ~WriterMark() { writing_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool>& writing_;
};

bool is_valid(std::string_view key) noexcept {
  return !key.empty() && key.size() <= kKeyBytesMax;
}

tl::unexpected<Error> bad_key(std::string_view key) {
  if (key.empty()) return fail(Code::invalid_argument, "an empty key; a key has at least 1 byte");
  return fail(Code::too_large, "a key of {} bytes; at most {}", key.size(), kKeyBytesMax);
}

}  // namespace

CheckedStore::CheckedStore(std::unique_ptr<Store> engine, std::optional<StoreDirectory> directory,
                           std::optional<AckedFile> acked, bool read_only)
    : directory_(std::move(directory)),
      engine_(std::move(engine)),
      acked_(std::move(acked)),
      capabilities_(engine_->capabilities()),
      read_only_(read_only) {
  if (!directory_ || read_only_) return;
  reserve_.emplace(directory_->path());
  reserve_->take();
}

CheckedStore::~CheckedStore() {
  static_cast<void>(close());
}

tl::unexpected<Error> CheckedStore::refusal() const {
  if (state_.load(std::memory_order_acquire) == State::closed) {
    return fail(Code::invalid_argument, "the store is closed");
  }
  const std::scoped_lock lock(reason_mutex_);
  return fail(Code::failed, "the store has failed, what is on disk is unknown, open it again; first reason: {}",
              reason_);
}

tl::unexpected<Error> CheckedStore::read_only_refusal() {
  return fail(Code::invalid_argument, "the store is open for reading only");
}

void CheckedStore::latch(const Error& reason) const {
  const std::scoped_lock lock(reason_mutex_);
  State expected = State::open;
  if (reason_.empty()) reason_ = reason.text;
  state_.compare_exchange_strong(expected, State::failed, std::memory_order_acq_rel);
}

template <class T>
Result<T> CheckedStore::noted(Result<T> answer) const {
  if (!answer && answer.error().code == Code::failed) latch(answer.error());
  return answer;
}

Result<void> CheckedStore::noted_change(Result<void> answer) const {
  if (!answer && (answer.error().code == Code::failed || answer.error().code == Code::io_error)) latch(answer.error());
  return answer;
}

Result<void> CheckedStore::write(const WriteBatch& batch, Durability durability) {
  if (!is_open()) return refusal();
  if (read_only_) return read_only_refusal();
  KV_TRY(batch.check());
  const WriterMark mark(writing_);
  KV_TRY(noted_change(write_within_space(batch, durability)));
  return acknowledge(capabilities_.given(durability) == Durability::disk);
}

// On a full disk a batch that only takes away gets the reserve.
Result<void> CheckedStore::write_within_space(const WriteBatch& batch, Durability durability) {
  auto written = engine_->write(batch, durability);
  if (!reserve_) return written;
  full_ = !written && written.error().code == Code::no_space;
  if (full_ && batch.puts() == 0 && reserve_->give_up()) {
    written = engine_->write(batch, durability);
    full_ = !written && written.error().code == Code::no_space;
  }
  if (written) reserve_->take_sometimes();
  return written;
}

BatchMark CheckedStore::last_mark() const {
  BatchMark mark{.batch = engine_->last_batch(), .seq = 0};
  const auto found =
      engine_->get(Space::meta, kMetaSeq, [&](std::string_view value) { mark.seq = decode_seq(value).value_or(0); });
  if (!found) mark.seq = 0;  // The number only serves messages.
  return mark;
}

Result<void> CheckedStore::acknowledge(bool on_disk) {
  if (!acked_) return {};
  const BatchMark now = last_mark();
  auto recorded = acked_->record(now, on_disk ? now : acked_->last().on_disk);
  if (recorded) return {};
  Error error = std::move(recorded).error();
  error.code = Code::failed;  // The batch is in the store, so this is not "nothing was written".
  latch(error);
  return tl::unexpected<Error>(std::move(error));
}

Result<bool> CheckedStore::get(Space space, std::string_view key, ValueVisitor visit) const {
  if (!is_open()) return refusal();
  if (!is_valid(key)) return bad_key(key);
  return noted(engine_->get(space, key, visit));
}

Result<std::size_t> CheckedStore::multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const {
  if (!is_open()) return refusal();
  for (const std::string_view key : keys) {
    if (!is_valid(key)) return bad_key(key);
  }
  return noted(engine_->multi_get(keys, visit));
}

Result<std::size_t> CheckedStore::scan(Space space, const Range& range, EntryVisitor visit) const {
  if (!is_open()) return refusal();
  const ScanBounds bounds(range);
  return noted(engine_->scan(space, bounds.range(), visit));
}

Result<void> CheckedStore::sync() {
  if (!is_open()) return refusal();
  if (read_only_) return {};
  const WriterMark mark(writing_);
  KV_TRY(noted_change(engine_->sync()));
  return acknowledge(true);
}

std::uint64_t CheckedStore::last_batch() const noexcept {
  return engine_->last_batch();
}

Result<std::uint64_t> CheckedStore::count() const {
  if (!is_open()) return refusal();
  return noted(engine_->count());
}

void CheckedStore::stats(StatVisitor visit) const {
  if (is_open()) engine_->stats(visit);
}

Result<VerifyReport> CheckedStore::verify() const {
  if (!is_open()) return refusal();
  return noted(engine_->verify());
}

Result<void> CheckedStore::compact() {
  if (!is_open()) return refusal();
  if (read_only_) return read_only_refusal();
  const WriterMark mark(writing_);
  return noted(engine_->compact());
}

Result<void> CheckedStore::backup(const std::filesystem::path& to) const {
  if (!is_open()) return refusal();
  if (!directory_) return noted(engine_->backup(to));
  KV_TRY(directory_->prepare_copy(to));
  const BatchMark held = last_mark();  // The copy has this batch, and may have later ones.
  auto copied = noted(engine_->backup(to));
  if (copied) copied = directory_->complete_copy(to, held);
  std::error_code ignored;
  if (!copied) std::filesystem::remove_all(to, ignored);  // It was not there before; half a copy is none.
  return copied;
}

Result<void> CheckedStore::close() {
  const State before = state_.exchange(State::closed, std::memory_order_acq_rel);
  if (before == State::closed) return {};
  const WriterMark mark(writing_);
  if (full_) reserve_->give_up();  // What closing writes must not fail for want of space.
  auto closed = engine_->close();
  if (full_) reserve_->take();
  if (closed && acked_ && before == State::open) closed = acked_->settle();
  directory_.reset();
  if (before == State::open) return closed;
  const std::scoped_lock lock(reason_mutex_);
  return fail(Code::failed, "the store had failed, what is on disk is unknown; first reason: {}", reason_);
}

}  // namespace kvingest
