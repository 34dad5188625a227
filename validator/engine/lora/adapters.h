// Low-rank adapters beside the matrices of a block and of its experts: y += scale · (x aᵀ) bᵀ for
// each adapted layer.
//
// What the first product returns is kept for the backward pass, where its gradient takes its place.
#pragma once

#include <array>
#include <span>
#include <string>

#include "device/backend.h"
#include "engine/unit_tensors.h"
#include "memory/arena.h"
#include "model/adapter_layout.h"

namespace shardplan::validator {

/// By Linear: [rows, adapted layers of the matrix · rank], of matrices of experts [slots, rank];
/// empty where none is.
using LowRank = std::array<Tensor, kLinears.size()>;

/// Rows that the matrices of a block are multiplied with.
struct AdaptedRows {
  std::int64_t own = 0;    ///< its own
  std::int64_t slots = 0;  ///< those of its experts, all together
};

/// The tensors of a pass; names begin with `name`.
LowRank allocate_low_rank(Arena& arena, const std::string& name,
                          const AdapterParameters& parameters, const AdaptedRows& rows,
                          DType dtype);

/// Those beside one matrix in one pass; without parts there are none, and nothing is done.
struct LinearAdapters {
  std::span<const LayerRows> parts;  ///< of the matrix, adapted each by itself
  Tensor a, b;                       ///< [parts · rank, inputs] and [rows of all parts, rank]
  Tensor da, db;                     ///< their gradients, in a backward pass
  Tensor low;                        ///< [rows, parts · rank]
  float scale = 1;
  bool accumulate = false;  ///< gradients are added to what is there
  /// Of as many experts, which lie one behind the other with as many rows each; of one part.
  std::int64_t experts = 1;
  bool counted = false;  ///< rows that an expert was given: others the next time

  void forward(Backend& device, const Tensor& y, const Tensor& x) const;
  /// As far as the backward pass reads it.
  void repeat(Backend& device, const Tensor& x) const;
  /// The gradients of a and b.
  void backward(Backend& device, const Tensor& dy, const Tensor& x) const;
  /// After backward(): adds to the gradient of x, which may have its place by now.
  void add_input_gradient(Backend& device, const Tensor& dx) const;
  /// In the place of backward(), of an expert that no row went to.
  void backward_of_no_rows(Backend& device) const;
};

/// The slots of an expert among those of a rank; or of several, one behind the other.
struct ExpertRows {
  std::int64_t expert = 0;  ///< of those here, the first
  std::int64_t first = 0, count = 0;
  std::int64_t experts = 1;  ///< which share the slots evenly
  bool counted = false;      ///< as many as were given; else as many as there is room for
};

/// Those of one block in one pass; without parameters there are none.
struct BlockAdapters {
  const AdapterParameters* parameters = nullptr;
  UnitTensors unit, experts;  ///< beside the block's own matrices, and its experts'
  LowRank low;
  bool lowest = false;  ///< in the first block with any: no gradient is needed below them

  /// Whether the gradient of what a matrix reads is needed.
  bool needs_input(Linear l) const {
    return parameters == nullptr || !lowest || l > parameters->lowest();
  }
  /// Those beside a matrix of the block.
  LinearAdapters beside(Linear l) const;
  /// And beside the matrix of an expert.
  LinearAdapters beside(Linear l, const ExpertRows& rows) const;

 private:
  bool has(Linear l) const { return parameters != nullptr && !parameters->of(l).parts.empty(); }
};

/// The matrices of such experts in [experts, rows, columns], one below the other; nothing of
/// nothing.
Tensor of_experts(const Tensor& all, const ExpertRows& which);

}  // namespace shardplan::validator
