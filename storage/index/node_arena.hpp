// node_arena.hpp -- memory for the nodes of a tree: one reserved range of fixed-size slots on huge pages.
//
// On 4 KiB pages the tree of the mmap store measured 5 times slower: each new node is a page fault and each descent
// misses the TLB. So the range asks for huge pages, and prefault() touches them ahead of the writer.
//
// Threads:  allocate() and release() by one thread at a time; prefault() and the counters on any thread.
// Lifetime: a slot stays where it is until the arena dies; a released one is handed out again first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kvingest/result.hpp"

namespace kvingest {

class NodeArena {
 public:
  using Id = std::uint32_t;
  static constexpr Id kNone = ~Id{0};

  /// Reserves address space for `bytes_max`, less where the system refuses so much. No memory is taken yet.
  /// Fails with: io_error (no address space at all).
  static Result<NodeArena> reserve(std::size_t slot_bytes, std::size_t bytes_max);

  NodeArena(NodeArena&& other) noexcept;
  NodeArena& operator=(NodeArena&&) = delete;
  ~NodeArena();

  /// A slot with undefined content; the caller has checked free_slots().
  [[nodiscard]] Id allocate() noexcept;
  void release(Id id) noexcept;
  /// Takes all slots back, and hands out the first `count`.
  void restart(std::size_t count) noexcept;
  [[nodiscard]] char* at(Id id) const noexcept { return base_ + std::size_t{id} * slot_bytes_; }

  /// Slots that can still be allocated.
  [[nodiscard]] std::size_t free_slots() const noexcept { return slots_max_ - used_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_.load(std::memory_order_relaxed) * slot_bytes_; }

  /// Backs the slots that will be handed out next with memory, one step per call. Returns false when far enough ahead.
  bool prefault() noexcept;
  [[nodiscard]] bool wants_prefault() const noexcept {
    return prefaulted_.load(std::memory_order_relaxed) < prefault_goal();
  }

 private:
  [[nodiscard]] std::size_t prefault_goal() const noexcept;

  NodeArena(char* base, std::size_t slot_bytes, std::size_t mapped_bytes, std::size_t slots_max) noexcept;

  char* base_;
  std::size_t slot_bytes_;
  std::size_t mapped_bytes_;
  std::size_t slots_max_;
  Id free_ = kNone;                         // Head of the list of released slots; each holds the next one's id.
  std::atomic<std::size_t> used_{0};        // Slots handed out and not released.
  std::atomic<std::size_t> high_water_{0};  // Slots ever handed out.
  std::atomic<std::size_t> prefaulted_{0};  // Bytes from base_ that have been touched ahead.
};

}  // namespace kvingest
