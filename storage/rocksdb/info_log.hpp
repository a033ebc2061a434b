// info_log.hpp -- RocksDB's own log of what it does, DIR/db/LOG, bounded and never in the way.
//
// RocksDB's logger keeps every LOG it ever began unless told otherwise, and in builds with assertions (Debian's) it
// ends the process at the second line that finds no space. This one drops what it cannot write, and at kFileBytesMax
// begins again beside LOG.old.
//
// Threads:  any; RocksDB logs from all of its own.
// Lifetime: shared with the database, which logs until its last thread has ended.
#pragma once

#include <rocksdb/env.h>

#include <cstdarg>
#include <cstdint>
#include <filesystem>
#include <mutex>

#include "base/posix.hpp"

namespace kvingest::rocks {

class InfoLog final : public rocksdb::Logger {
 public:
  static constexpr std::uint64_t kFileBytesMax = std::uint64_t{4} << 20;

  /// Appends to `dir`/LOG. Where that cannot be opened, nothing is logged.
  InfoLog(const Posix& posix, const std::filesystem::path& dir);
  ~InfoLog() override = default;

  using rocksdb::Logger::Logv;
  void Logv(const char* format, std::va_list arguments) override;
  [[nodiscard]] std::size_t GetLogFileSize() const override;

 private:
  void open();

  const Posix& posix_;
  const std::filesystem::path path_;
  mutable std::mutex mutex_;  // Guards all below.
  File file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace kvingest::rocks
