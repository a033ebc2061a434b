// recovery.hpp -- reads the log of a store that is opened: every frame is checked and replayed. Segments are read at
// the same time, each on its own, and then joined in their order.
//
// Frames are numbered without gaps. The first place where the next number is not found sound is the end of the log, if
// the log itself does not say that the frame was on disk: then what lies behind it was never acknowledged as safe from
// power loss, a torn tail. It is cut and set aside, so that nothing of it comes back later. If the log does say so (any
// synced_to at or above that number, also that of the list of segments), it is damage: refused, and nothing is changed.
//
// Where compaction has dropped segments, the list of segments says with which frame the next one begins. Where there is
// a checkpoint of the index (checkpoint_reader.hpp), only the frames behind it are read.
//
// Threads: one, which shares its work out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/posix.hpp"
#include "kvingest/result.hpp"
#include "kvingest/thread_pool.hpp"
#include "storage/mmap/checkpoint_format.hpp"
#include "storage/mmap/log.hpp"
#include "storage/mmap/opening_progress.hpp"
#include "storage/mmap/replay.hpp"
#include "storage/mmap/segment.hpp"
#include "storage/mmap/segment_list.hpp"

namespace kvingest::mmap_store {

struct SegmentFile {
  std::filesystem::path path;
  SegmentHeader header;
  std::uint64_t bytes = 0;
  std::optional<ListedSegment> listed;  ///< What the list of segments says of it.
};

struct LogFiles {
  std::vector<SegmentFile> segments;             ///< In the order of their numbers, each with its checked header.
  std::vector<std::filesystem::path> left_over;  ///< Dropped by compaction, and their files not yet removed.
  std::uint64_t synced_to = 0;                   ///< What the list of segments says.
};

/// The segment files in `dir`. Fails with: corrupt (a header, a file that is missing or of another store), io_error.
Result<LogFiles> list_segments(const Posix& posix, const std::filesystem::path& dir);

/// Called when all segments are mapped and no frame has been replayed: says with which checkpoint the index has been
/// filled, if with one. It outlives the recovery.
using LoadCheckpoint = std::function<const CheckpointTable*(std::span<const std::unique_ptr<Segment>> segments)>;

struct Recovered {
  LogContent content;
  std::unique_ptr<Segment> prepared;  ///< An empty segment behind the last one that holds frames.
  std::string torn_tail;              ///< Empty, or one sentence on what was found behind the end of the log.
};

struct RecoveryPlan {
  const SegmentHome& home;
  const LogFiles& files;
  std::uint64_t segment_bytes;
  bool read_only;              ///< Nothing is changed on disk.
  std::uint64_t gather_bytes;  ///< Segments of so many bytes are read before what they do is applied.
  ThreadPool& pool;
  OpeningProgress& progress;
  const LoadCheckpoint& load;
  Replay& replay;
};

/// Fails with: corrupt (file and offset), io_error, no_space.
Result<Recovered> recover(const RecoveryPlan& plan);

}  // namespace kvingest::mmap_store
