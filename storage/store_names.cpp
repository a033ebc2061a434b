#include "kvingest/store.hpp"

namespace kvingest {

std::string_view to_string(Durability level) noexcept {
  switch (level) {
    case Durability::memory:
      return "memory";
    case Durability::kernel:
      return "kernel";
    case Durability::disk:
      return "disk";
  }
  return "unknown";
}

}  // namespace kvingest
