// salvage.hpp -- what can still be read of a store that does not open or does not verify. It changes nothing; `kvq
// repair` makes a new store of what it gives.
//
// Threads:  one.
// Lifetime: what a Salvager is shown is valid until it returns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/posix.hpp"
#include "kvingest/result.hpp"
#include "kvingest/write_batch.hpp"

namespace kvingest {

/// Something that is not given: a damaged place in a file, or what is missing.
struct Loss {
  std::filesystem::path file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< Of the file from `offset` on, to be set aside; 0: none.
  std::string what;         ///< One sentence, without the place.
};

class Salvager {
 public:
  Salvager() = default;
  Salvager(const Salvager&) = delete;
  Salvager& operator=(const Salvager&) = delete;
  virtual ~Salvager() = default;

  /// A change that holds; in the order in which they are to be applied.
  virtual Result<void> take(const BatchOperation& operation) = 0;
  virtual Result<void> lose(const Loss& loss) = 0;
};

struct SalvageSource {
  const Posix& posix;
  std::filesystem::path dir;      ///< The store; nobody may write to it meanwhile.
  std::filesystem::path scratch;  ///< A directory for copies that an engine works on; it may be left empty.
};

/// The engine whose files are in `dir`, told by their names; nothing where there are none.
[[nodiscard]] std::optional<std::string_view> engine_of_files(const std::filesystem::path& dir);

/// Passes what holds in the store of `engine` to `salvager`; returns the number of the last batch, where it is known.
/// Fails with: unsupported (nothing is kept by this engine, or it is not in this build), corrupt (nothing at all can be
/// read), io_error, and what `salvager` fails with.
[[nodiscard]] Result<std::optional<std::uint64_t>> salvage(std::string_view engine, const SalvageSource& source,
                                                           Salvager& salvager);

// One for each engine, in its own folder.
namespace slots {
Result<std::optional<std::uint64_t>> salvage(const SalvageSource& source, Salvager& salvager);
}
namespace mmap_store {
Result<std::optional<std::uint64_t>> salvage(const SalvageSource& source, Salvager& salvager);
}
namespace lmdb {
Result<std::optional<std::uint64_t>> salvage(const SalvageSource& source, Salvager& salvager);
}
namespace rocks {
Result<std::optional<std::uint64_t>> salvage(const SalvageSource& source, Salvager& salvager);
}

}  // namespace kvingest
