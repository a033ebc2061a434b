#include <array>

#include "storage/engine_rows.hpp"

namespace kvingest {
namespace {

constexpr std::array<const Engine*, 1> kEngines = {&kNullEngine};

}  // namespace

std::span<const Engine* const> engines() noexcept {
  return kEngines;
}

}  // namespace kvingest
