// The one place that device memory comes from: a stack of named, categorised tensors in a single
// block of device memory.
//
// What a run keeps is allocated first; what a step needs is pushed inside an Arena::Scope and
// popped with it, so that the same code always puts the same tensor at the same address. A dry run
// is an arena without memory: addresses start at 0, and extent() tells how large the block must be.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "memory/phases.h"
#include "memory/tensor.h"
#include "program/category.h"

namespace shardplan::validator {

/// Addresses and sizes are multiples of this: what memory transactions and tensor cores like.
inline constexpr std::int64_t kAlignment = 512;

using CategoryBytes = std::array<std::int64_t, kCategoryCount>;

struct Allocation {
  std::string name;  ///< "blocks.3.qkv"
  Category category = Category::other;
  Tensor tensor;
  std::int64_t bytes = 0;  ///< aligned
};

/// Live bytes over a phase: the most, what it was made of, and what was left at the end.
struct PhaseMemory {
  std::int64_t peak = 0;
  std::int64_t end = 0;
  CategoryBytes at_peak{};
};

struct MemoryProfile {
  std::array<PhaseMemory, kPhaseCount> phases;  ///< by Phase
  const PhaseMemory& of(Phase p) const { return phases[static_cast<std::size_t>(p)]; }
  std::int64_t peak() const;
  Phase peak_phase() const;
  /// Live between steps, by category.
  CategoryBytes resident{};
};

/// The arena has no room for a tensor; `what` names it and lists what is alive: exit code 5.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Arena {
 public:
  /// An arena on the block of `capacity` bytes at `base`; addresses of a dry run start at 0.
  Arena(std::uintptr_t base, std::int64_t capacity) : base_(base), capacity_(capacity) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Throws OutOfMemory when it does not fit: what was asked for and everything that is alive.
  Tensor allocate(std::string name, Category category, DType dtype, Shape shape);

  /// Pops everything that was allocated during its life.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), mark_(arena.live_.size()) {}
    ~Scope() { arena_.pop_to(mark_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    std::size_t mark_;
  };

  /// Phases of the same name add up until reset_peaks(): the highest peak, the latest end.
  void begin_phase(Phase phase);
  /// Called whenever a phase begins.
  void on_phase(std::function<void(Phase)> begun) { begun_ = std::move(begun); }
  void end_phase();
  /// Forgets the phases of a step, not those of the model and of saving: the next step is measured
  /// anew.
  void reset_peaks();
  const MemoryProfile& profile() const { return profile_; }

  std::int64_t live_bytes() const { return live_bytes_; }
  const std::vector<Allocation>& live() const { return live_; }
  /// The bytes of what was allocated when `before` tensors were alive: they lie side by side.
  Tensor all_since(std::size_t before) const;
  /// The most that was ever alive: how large the block must be.
  std::int64_t extent() const { return extent_; }

  /// A table of what is alive, the largest first; tensors that differ in a number only share a row.
  std::string table(std::size_t most_rows = 20) const;

 private:
  void pop_to(std::size_t mark);
  void note_peak();

  std::uintptr_t base_;
  std::int64_t capacity_;
  std::vector<Allocation> live_;
  std::int64_t live_bytes_ = 0;
  std::int64_t extent_ = 0;
  CategoryBytes by_category_{};
  MemoryProfile profile_;
  std::optional<Phase> phase_;
  std::function<void(Phase)> begun_;
};

}  // namespace shardplan::validator
