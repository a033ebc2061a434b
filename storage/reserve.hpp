// reserve.hpp -- the file `reserve`: blocks that nobody uses. They are given up when the disk is full, so that a store
// can be opened, erased from and closed there.
//
// Its calls do not go through the table of system calls: what becomes of it changes no answer of a store.
//
// Threads: the writer's. Errors: none; a disk without room for a reserve has none.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace kvingest {

inline constexpr std::string_view kReserveName = "reserve";
inline constexpr std::uint64_t kReserveBytes = std::uint64_t{4} << 20;  // What opening and a batch of erases may take.

class Reserve {
 public:
  /// Of the store in `dir`, which the caller has locked.
  explicit Reserve(const std::filesystem::path& dir) : path_(dir / kReserveName) {}

  /// Takes the blocks where there is no reserve, or as many as there are.
  void take();
  /// The same, at most once a second.
  void take_sometimes();
  /// Gives the blocks back to the file system. False: there was no reserve.
  bool give_up();

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path path_;
  bool taken_ = false;
  Clock::time_point next_try_{};
};

}  // namespace kvingest
