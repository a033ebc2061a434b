#include "base/thread.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

namespace kvingest {
namespace {

constexpr int kCpusMax = 8192;  // Twice the kernel's largest NR_CPUS in use.

struct CpuSet {
  CpuSet() : set(CPU_ALLOC(kCpusMax)) { CPU_ZERO_S(bytes, set); }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
  ~CpuSet() { CPU_FREE(set); }
  std::size_t bytes = CPU_ALLOC_SIZE(kCpusMax);
  cpu_set_t* set;
};

Result<std::vector<int>> affinity(pid_t thread) {
  CpuSet mask;
  if (sched_getaffinity(thread, mask.bytes, mask.set) != 0) return fail(errno, "sched_getaffinity");
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kCpusMax; ++cpu) {
    if (CPU_ISSET_S(cpu, mask.bytes, mask.set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

Result<std::vector<int>> allowed_cpus() {
  return affinity(0);
}

std::string format_cpus(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (end > i + 1) text += '-' + std::to_string(cpus[end - 1]);
    i = end;
  }
  return text;
}

Result<void> pin_this_thread(int cpu) {
  auto allowed = allowed_cpus();
  KV_TRY(allowed);
  if (std::find(allowed->begin(), allowed->end(), cpu) == allowed->end()) {
    return fail(Code::invalid_argument, "CPU {} is not among those this process may use: {}", cpu,
                format_cpus(*allowed));
  }
  CpuSet wanted;
  CPU_SET_S(cpu, wanted.bytes, wanted.set);
  if (sched_setaffinity(0, wanted.bytes, wanted.set) != 0) return fail(errno, "pin to CPU {}", cpu);
  auto got = affinity(0);
  KV_TRY(got);
  if (*got != std::vector<int>{cpu}) {
    return fail(Code::io_error, "pin to CPU {}: the system says {}", cpu, format_cpus(*got));
  }
  return {};
}

void name_this_thread(std::string_view name) noexcept {
  char text[16] = {};
  name.substr(0, sizeof text - 1).copy(text, sizeof text - 1);
  pthread_setname_np(pthread_self(), text);
}

}  // namespace kvingest
