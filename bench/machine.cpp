#include "bench/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/thread.hpp"

namespace kvingest::bench {
namespace {

/// What follows `name` and a separator on the first line of `path` that begins with it.
std::string field_of(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t from = line.find_first_not_of(" \t:=\"", name.size());
    const std::size_t to = line.find_last_not_of(" \t\"");
    return from == std::string::npos ? "" : line.substr(from, to - from + 1);
  }
  return {};
}

std::string kernel_name() {
  utsname name{};
  if (::uname(&name) != 0) return {};
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

bool is_below(const std::string& path, const std::string& mount_point) {
  if (mount_point == "/") return true;
  return path.starts_with(mount_point) && (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

/// The type of the file system that is mounted closest above `dir`.
std::string filesystem_of(const std::filesystem::path& dir) {
  std::error_code ignored;
  const std::string path = std::filesystem::weakly_canonical(dir, ignored).native();
  std::ifstream mounts("/proc/self/mounts");
  std::string best, type;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, mount_point, kind;
    words >> device >> mount_point >> kind;
    if (!is_below(path, mount_point) || mount_point.size() < best.size()) continue;
    best = mount_point;
    type = kind;
  }
  return type;
}

std::string compiler_name() {
#ifdef __clang__
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

Machine describe_machine(const std::filesystem::path& dir) {
  const auto cpus = allowed_cpus();
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page_bytes = ::sysconf(_SC_PAGESIZE);
  return {
      .cpu = field_of("/proc/cpuinfo", "model name"),
      .cpus = cpus ? format_cpus(*cpus) : "",
      .memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes),
      .kernel = kernel_name(),
      .system = field_of("/etc/os-release", "PRETTY_NAME"),
      .compiler = compiler_name(),
      .load = load_average(),
      .filesystem = filesystem_of(dir),
  };
}

bool is_memory_filesystem(const Machine& machine) {
  return machine.filesystem == "tmpfs" || machine.filesystem == "ramfs";
}

std::uint64_t available_memory_bytes() {
  return std::strtoull(field_of("/proc/meminfo", "MemAvailable").c_str(), nullptr, 10) * 1024;
}

void write_machine(JsonWriter& json, const Machine& machine) {
  json.begin_object().field("cpu", machine.cpu).field("cpus", machine.cpus);
  json.field("memory_bytes", machine.memory_bytes).field("kernel", machine.kernel).field("system", machine.system);
  json.field("load", machine.load)
      .field("compiler", machine.compiler)
      .field("filesystem", machine.filesystem)
      .end_object();
}

}  // namespace kvingest::bench
