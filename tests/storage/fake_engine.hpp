// fake_engine.hpp -- a persistent engine that tests steer: it keeps its batches in memory and its number in a file.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "kvingest/engine.hpp"

namespace kvingest::test {

/// What the next calls of every open fake store do; one test at a time changes it.
struct FakePlan {
  std::optional<Error> write;  ///< write() fails with it.
  std::optional<Error> sync;
  std::optional<Error> get;
  std::optional<Error> open;
  std::optional<Error> backup;              ///< What backup() fails with, half done.
  std::optional<std::uint64_t> last_batch;  ///< What an opened store claims.
  EngineContext seen;                       ///< What open() was given.
  Range seen_range;                         ///< What scan() was given; its views are not to be read.
  std::string seen_first;                   ///< Its bounds.
  std::string seen_last;
  int opens = 0;
  int closes = 0;
};
extern FakePlan fake_plan;

/// Persistent, format 3, options "size" and "speed".
extern const Engine kFakeEngine;
/// The same name and files, of another format.
extern const Engine kNewerFakeEngine;
/// The same, whose readers share.
extern const Engine kSharedFakeEngine;
/// Another name.
extern const Engine kOtherFakeEngine;

}  // namespace kvingest::test
