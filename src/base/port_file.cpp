#include "base/port_file.hpp"

#include <cerrno>

#include "base/posix.hpp"

namespace kvingest {

Result<void> write_port_file(const std::filesystem::path& path, std::span<const ListenerPlace> listeners) {
  const Posix& posix = Posix::real();
  std::string lines;
  for (const ListenerPlace& listener : listeners) lines += listener.name + " " + listener.address + "\n";
  std::filesystem::path next = path;
  next += ".tmp";
  {
    auto file = File::open(posix, next, O_WRONLY | O_CREAT | O_TRUNC);
    KV_TRY(file);
    KV_TRY(file->write_at(lines, 0));
  }
  if (posix.rename(next.c_str(), path.c_str()) != 0)
    return fail(errno, "rename {} to {}", next.native(), path.native());
  return {};
}

}  // namespace kvingest
