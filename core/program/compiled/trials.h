// What Inductor allocates to time products with and without longer rows, and kernels of its own.
#pragma once

#include <vector>

#include "program/compiled/padding.h"
#include "program/compiled/units.h"
#include "program/tape.h"
#include "program/tape/writer.h"

namespace shardplan::compiled {

/// A linear whose products are timed both ways.
struct TimedProduct {
  ProductSize size;
  std::int64_t padded = 0;  ///< columns that it has then
  DType type = DType::bf16;
  bool input_grad = false, weight_grad = false;
};

/// The allocations and frees of all of them, as the passes over a joint graph find its products:
/// the last one first.
std::vector<TapeEvent> trial_events(const std::vector<TimedProduct>& products);

/// Inductor chooses among several forms of a kernel where that first runs, and clears the L2 cache
/// between them (PyTorch 2.11, torch/_inductor/runtime/triton_heuristics.py and benchmarking.py). A
/// block as large as the cache comes and goes, and what is allocated next may take a part of its
/// place. From the allocator's histories of Qwen2.5 3B with Liger and of Phi-4-mini.
class KernelTrials {
 public:
  /// `cache`: bytes of the GPU's L2 cache; 0: not known, and nothing is written.
  KernelTrials(tape::TapeWriter& writer, std::int64_t cache) : writer_(writer), cache_(cache) {}

  /// Kernels of one source are one: here those that go over as much, and read and write as much.
  /// `which`: of those of a unit.
  void time(const JointGraph& graph, const Unit& unit, std::int64_t which);

 private:
  tape::TapeWriter& writer_;
  std::int64_t cache_;
};

}  // namespace shardplan::compiled
