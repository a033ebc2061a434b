// kvingest/limits.hpp -- the sizes every engine keeps, so that data can move between engines.
#pragma once

#include <cstddef>

namespace kvingest {

/// LMDB's compiled-in limit; shared by all engines so that any store can be converted into any other.
inline constexpr std::size_t kKeyBytesMax = 511;
/// A value is held whole by one batch and one log frame.
inline constexpr std::size_t kValueBytesMax = std::size_t{64} << 20;
/// One write(): room for one value of the largest size beside ordinary traffic.
inline constexpr std::size_t kBatchBytesMax = std::size_t{128} << 20;
/// The key of a record that is keyed by its arrival number: 8 bytes, big-endian, so that byte order is number order.
inline constexpr std::size_t kSeqKeyBytes = 8;

static_assert(kValueBytesMax + kKeyBytesMax + 64 < kBatchBytesMax, "the largest record must fit into a batch");

}  // namespace kvingest
