// Low-rank adapters beside the matrices of a block: y += scale · (x aᵀ) bᵀ for each adapted layer.
//
// What the first product returns is kept for the backward pass, where its gradient takes its place.
#pragma once

#include <array>
#include <string>

#include "device/backend.h"
#include "engine/unit_tensors.h"
#include "memory/arena.h"
#include "model/adapter_layout.h"

namespace shardplan::validator {

/// By Linear: [rows, adapted layers of the matrix · rank]; empty where none is.
using LowRank = std::array<Tensor, kLinears.size()>;

/// The tensors of a pass; names begin with `name`.
LowRank allocate_low_rank(Arena& arena, const std::string& name,
                          const AdapterParameters& parameters, std::int64_t rows, DType dtype);

/// Those of one block in one pass; without parameters there are none, and nothing is done.
struct BlockAdapters {
  const AdapterParameters* parameters = nullptr;
  UnitTensors unit;
  LowRank low;
  bool lowest = false;  ///< in the first block with any: no gradient is needed below them

  /// Whether the gradient of what a matrix reads is needed.
  bool needs_input(Linear l) const {
    return parameters == nullptr || !lowest || l > parameters->lowest();
  }
  void forward(Backend& device, Linear l, const Tensor& y, const Tensor& x) const;
  /// As far as the backward pass reads it.
  void repeat(Backend& device, Linear l, const Tensor& x) const;
  /// The gradients of a and b.
  void backward(Backend& device, Linear l, const Tensor& dy, const Tensor& x) const;
  /// After backward(): adds to the gradient of x, which may have its place by now.
  void add_input_gradient(Backend& device, Linear l, const Tensor& dx) const;

 private:
  const Tensor& low_of(Linear l) const { return low[static_cast<std::size_t>(l)]; }
  bool has(Linear l) const { return parameters != nullptr && !parameters->of(l).parts.empty(); }
};

}  // namespace shardplan::validator
