// engine_rows.hpp -- the row that each engine's folder defines. A build without an engine links its `missing` row,
// which has the same name and says what to install.
#pragma once

#include "kvingest/engine.hpp"

namespace kvingest {

extern constinit const Engine kNullEngine;
extern constinit const Engine kHashEngine;
extern constinit const Engine kMapEngine;
extern constinit const Engine kFileEngine;
extern constinit const Engine kMmapEngine;
extern constinit const Engine kLmdbEngine;
extern constinit const Engine kRocksdbEngine;

}  // namespace kvingest
