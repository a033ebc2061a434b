// store_tool.cpp -- the second process of the storage tests: opens a store and does one thing with it.
//
//   test_store_tool dump SPEC DIR                 every entry in hex, and the number of the last batch
//   test_store_tool write SPEC DIR LEVEL SEED N   campaign batches after the last one, up to N, then a proper close
//   test_store_tool hold SPEC DIR                 opens, says "open", keeps it until its stdin ends
//   test_store_tool campaign SPEC DIR LEVEL SEED  campaign batches without end; "s N" before and "a N" after each
//                                                 write(), so that whoever kills it knows what was acknowledged
//   test_store_tool bounded SPEC DIR LEVEL SEED N
//                                                 says "ready" and waits for a line, so that it can be traced from its
//                                                 first call on; then small campaign batches with such reports up to N
//                                                 and a proper close
//
// A failure is one line `CODE: text` on stderr and exit 1.
//
// Threads: campaign makes its batches ahead on a second thread, so that nearly all of the time goes into write().
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <mutex>
#include <thread>

#include "kvingest/engine.hpp"
#include "tests/storage/campaign.hpp"

namespace kvingest::test {
namespace {

[[noreturn]] void give_up(const Error& error) {
  std::cerr << to_string(error.code) << ": " << error.text << std::endl;
  std::_Exit(1);  // Without closing: the store may be in any state.
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::string hex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

// One call for each report: it is in the pipe before the next step begins, and kill -9 cannot take it back. No
// write(2): a test may fail those of the store.
void report(std::string line) {
  const iovec part{line.data(), line.size()};
  if (::writev(STDOUT_FILENO, &part, 1) != static_cast<ssize_t>(line.size())) std::_Exit(1);
}

/// Batches made ahead of the writer.
class BatchQueue {
 public:
  static constexpr std::size_t kAhead = 150;

  void push(WriteBatch batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_.size() < kAhead; });
    batches_.push_back(std::move(batch));
    changed_.notify_all();
  }
  void wait_until_full() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_.size() == kAhead; });
  }
  [[nodiscard]] bool empty() {
    const std::lock_guard lock(mutex_);
    return batches_.empty();
  }
  WriteBatch pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !batches_.empty(); });
    WriteBatch batch = std::move(batches_.front());
    batches_.pop_front();
    changed_.notify_all();
    return batch;
  }

 private:
  std::mutex mutex_;  // Guards batches_.
  std::condition_variable changed_;
  std::deque<WriteBatch> batches_;
};

void dump(const Store& store) {
  std::cout << "last_batch " << store.last_batch() << "\n";
  for (const Space space : {Space::records, Space::meta}) {
    must(store.scan(space, {}, [&](std::string_view key, std::string_view value) {
      std::cout << (space == Space::records ? "record " : "meta ") << hex(key) << " " << hex(value) << "\n";
      return true;
    }));
  }
}

void write_until(Store& store, Durability level, std::uint64_t seed, std::uint64_t last) {
  for (std::uint64_t number = store.last_batch() + 1; number <= last; ++number) {
    must(store.write(to_batch(campaign_batch({seed}, number), campaign_first(number)), level));
  }
}

[[noreturn]] void write_for_ever(Store& store, Durability level, std::uint64_t seed) {
  BatchQueue queue;
  const std::uint64_t first = store.last_batch() + 1;
  std::thread maker([&] {
    for (std::uint64_t number = first;; ++number) {
      queue.push(to_batch(campaign_batch({seed}, number), campaign_first(number)));
    }
  });
  queue.wait_until_full();
  report(fmt::format("s {}\n", first));
  for (std::uint64_t number = first;; ++number) {
    must(store.write(queue.pop(), level));
    // The next batch is at hand, so that there is no moment between two batches; else it is sent when it is made.
    const bool at_hand = !queue.empty();
    report(at_hand ? fmt::format("a {}\ns {}\n", number, number + 1) : fmt::format("a {}\n", number));
    if (at_hand) continue;
    queue.wait_until_full();
    report(fmt::format("s {}\n", number + 1));
  }
}

void write_bounded(Store& store, Durability level, std::uint64_t seed, std::uint64_t last) {
  for (std::uint64_t number = store.last_batch() + 1; number <= last; ++number) {
    report(fmt::format("s {}\n", number));
    must(store.write(to_batch(campaign_batch({seed, true}, number), campaign_first(number)), level));
    report(fmt::format("a {}\n", number));
  }
}

Durability parse_level(std::string_view name) {
  for (const Durability level : {Durability::memory, Durability::kernel, Durability::disk}) {
    if (to_string(level) == name) return level;
  }
  give_up({Code::invalid_argument, 0, "no such level"});
}

int run_tool(const std::vector<std::string>& words) {
  const std::string& command = words.at(1);
  const StoreSpec spec = must(parse_store_spec(words.at(2)));
  if (command == "bounded") {
    report("ready\n");
    std::string go;
    std::getline(std::cin, go);
  }
  const auto store = must(open_store(spec, {.dir = words.at(3)}));
  if (command == "dump") {
    dump(*store);
  } else if (command == "write") {
    write_until(*store, parse_level(words.at(4)), std::stoull(words.at(5)), std::stoull(words.at(6)));
  } else if (command == "campaign") {
    write_for_ever(*store, parse_level(words.at(4)), std::stoull(words.at(5)));
  } else if (command == "bounded") {
    write_bounded(*store, parse_level(words.at(4)), std::stoull(words.at(5)), std::stoull(words.at(6)));
  } else if (command == "hold") {
    std::cout << "open" << std::endl;
    std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  } else {
    give_up({Code::invalid_argument, 0, "no such command"});
  }
  must(store->close());
  return 0;
}

}  // namespace
}  // namespace kvingest::test

int main(int argc, char* argv[]) {
  ::signal(SIGXFSZ, SIG_IGN);  // A file-size limit is an error of the write, as in our programs.
  return kvingest::test::run_tool({argv, argv + argc});
}
