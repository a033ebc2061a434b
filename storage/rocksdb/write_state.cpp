#include "storage/rocksdb/write_state.hpp"

#include "storage/rocksdb/rocks_error.hpp"

namespace kvingest::rocks {

void WriteState::OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) {
  const std::scoped_lock lock(mutex_);
  stopped_ = info.condition.cur == rocksdb::WriteStallCondition::kStopped;
  if (stopped_) ++counters_.stops;
  if (info.condition.cur == rocksdb::WriteStallCondition::kDelayed) ++counters_.slowdowns;
  changed_.notify_all();
}

void WriteState::OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) {
  const std::scoped_lock lock(mutex_);
  ++counters_.errors;
  out_of_space_ = is_no_space(*error);
  changed_.notify_all();
}

void WriteState::OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) {
  const std::scoped_lock lock(mutex_);
  if (!info.new_bg_error.ok()) return;
  ++counters_.recoveries;
  out_of_space_ = false;
  changed_.notify_all();
}

void WriteState::reset() {
  const std::scoped_lock lock(mutex_);
  stopped_ = false;
  out_of_space_ = false;
}

bool WriteState::wait_while_stopped(std::chrono::milliseconds bound) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, bound, [this] { return !stopped_ || out_of_space_; }) && !stopped_;
}

bool WriteState::out_of_space() const {
  const std::scoped_lock lock(mutex_);
  return out_of_space_;
}

WriteState::Counters WriteState::counters() const {
  const std::scoped_lock lock(mutex_);
  return counters_;
}

}  // namespace kvingest::rocks
