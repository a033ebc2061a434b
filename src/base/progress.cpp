#include "base/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/quantity.hpp"

namespace kvingest {
namespace {

constexpr auto kBarEvery = std::chrono::milliseconds(100);
constexpr auto kLineEvery = std::chrono::seconds(5);
constexpr std::size_t kBarColumns = 30;

std::string bar(double share) {
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBarColumns);
  return "[" + std::string(full, '#') + std::string(kBarColumns - full, '.') + "] ";
}

}  // namespace

Progress::Progress(std::FILE* to, std::string what, std::uint64_t total)
    : to_(to), what_(std::move(what)), total_(total), terminal_(to != nullptr && ::isatty(::fileno(to)) == 1) {
  start_ = Clock::now();
  next_ = start_ + (terminal_ ? Clock::duration(kBarEvery) : Clock::duration(kLineEvery));
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", to_);  // Back to the first column, erase to the end of the line.
  std::fflush(to_);
  drawn_ = false;
}

void Progress::show_when_due(std::uint64_t done) {
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? Clock::duration(kBarEvery) : Clock::duration(kLineEvery));
  const std::string text = line(done, now);
  std::fputs((terminal_ ? "\r" + text + "\033[K" : text + "\n").c_str(), to_);
  std::fflush(to_);
  drawn_ = terminal_;
}

std::string Progress::line(std::uint64_t done, Clock::time_point now) const {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  const std::string rate_text = fmt::format("{}/s", format_grouped(static_cast<std::uint64_t>(rate)));
  if (total_ == 0) return fmt::format("{} {}  {}", what_, format_grouped(done), rate_text);
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  const double left = rate > 0 ? static_cast<double>(total_ - std::min(done, total_)) / rate : 0;
  return fmt::format("{}{} {} of {}  {:.0f} %  {}  {:.0f} s left", terminal_ ? bar(share) : "", what_,
                     format_grouped(done), format_grouped(total_), share * 100, rate_text, left);
}

}  // namespace kvingest
