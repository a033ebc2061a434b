#include <array>

#include "storage/engine_rows.hpp"

namespace kvingest {
namespace {

constexpr std::array kEngines = {
    &kNullEngine,  //
    &kLmdbEngine,
};

}  // namespace

std::span<const Engine* const> engines() noexcept {
  return kEngines;
}

}  // namespace kvingest
