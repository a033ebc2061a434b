#include "feed/answers.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "base/interrupt.hpp"

namespace kvingest::feed {
namespace {

constexpr std::size_t kErrorBytesMax = 4096;
constexpr std::size_t kLineBytesMax = 8192;  // Answers are shorter; a peer that is no kvingest may say anything.

/// The value of ` name=value` in an answer, without its quotes; empty when it is not there.
std::string_view value_of(std::string_view line, std::string_view name) {
  for (std::size_t at = 0; (at = line.find(name, at)) != std::string_view::npos; ++at) {
    const std::size_t behind = at + name.size();
    if (at == 0 || line[at - 1] != ' ' || behind >= line.size() || line[behind] != '=') continue;
    std::string_view value = line.substr(behind + 1);
    const bool quoted = value.starts_with('"');
    if (quoted) value.remove_prefix(1);
    return value.substr(0, value.find(quoted ? '"' : ' '));
  }
  return {};
}

std::uint64_t number_of(std::string_view line, std::string_view name) {
  const std::string_view text = value_of(line, name);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Answers::Answers(Stream& stream) : stream_(stream), thread_([this] { read(); }) {}

Answers::~Answers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  thread_.join();
}

void Answers::read() {
  std::array<char, 4096> buffer;
  std::string line;
  while (true) {
    const auto got = stream_.receive(buffer.data(), buffer.size());
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    if (!got || got->ended || stop_) {
      closed_ = true;
      changed_.notify_all();
      return;
    }
    for (const char c : std::string_view(buffer.data(), got->bytes)) {
      if (c != '\n') {
        if (line.size() < kLineBytesMax) line += c;
        continue;
      }
      take_line(line, now);
      line.clear();
    }
    changed_.notify_all();
  }
}

void Answers::take_line(std::string_view line, Clock::time_point now) {
  if (line.starts_with("!kv ack ")) {
    acknowledge(number_of(line, "line"), now);
  } else if (line.starts_with("!kv synced ")) {
    acknowledge(number_of(line, "line"), now);
    synced_ =
        Synced{number_of(line, "line"), number_of(line, "rejected"), std::string(value_of(line, "rejected_lines"))};
  } else if (line.starts_with("!kv welcome ")) {
    next_ = number_of(line, "next");
  } else if (line.starts_with("!kv error ") && errors_.size() < kErrorBytesMax) {
    errors_.append(line).append("\n");
  }
}

void Answers::acknowledge(std::uint64_t line, Clock::time_point now) {
  acknowledged_ = std::max(acknowledged_, line);
  while (!expected_.empty() && expected_.front().first <= acknowledged_) {
    samples_.times.push_back(now - expected_.front().second);
    expected_.pop_front();
  }
}

std::optional<std::uint64_t> Answers::wait_for_welcome(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return next_ || closed_; });
  return next_;
}

std::optional<Answers::Synced> Answers::wait_for_synced() {
  std::unique_lock lock(mutex_);
  while (!synced_ && !closed_ && !interrupted()) changed_.wait_for(lock, kTick);
  return synced_;
}

std::uint64_t Answers::acknowledged() const {
  const std::lock_guard lock(mutex_);
  return acknowledged_;
}

std::string Answers::errors() const {
  const std::lock_guard lock(mutex_);
  return errors_;
}

void Answers::expect(std::uint64_t last_line, Clock::time_point due) {
  const std::lock_guard lock(mutex_);
  expected_.emplace_back(last_line, due);
}

LatencySamples Answers::take_samples() {
  const std::lock_guard lock(mutex_);
  return std::exchange(samples_, {});
}

}  // namespace kvingest::feed
