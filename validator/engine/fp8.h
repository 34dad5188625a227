// The matrix products of a block in 8-bit floating point (device/fp8.h): operands are rounded for
// each product, into room that all products take turns in.
//
// Ranks that share each layer have the scales of the whole matrices, as torchao's linears of
// DTensors do (torchao 0.18, float8/float8_tensor_parallel.py: the largest magnitude of a DTensor
// is that over its ranks): they tell each other what each has found of its part, so that numbers
// are rounded as the undivided layer rounds them. A scale of what each rank has whole needs none.
//
// The matrices of a frozen block have no gradients: their products take one layout of the result's
// gradient, and x only forward.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "engine/tensor_ranks.h"
#include "memory/arena.h"
#include "model/adapter_layout.h"
#include "model/spec.h"

namespace shardplan::validator {

/// Of one block in one pass.
struct BlockFp8 {
  Fp8Recipe recipe = Fp8Recipe::none;
  Tensor room;    ///< bytes: the operands of one product
  Tensor scales;  ///< fp32: those of operands that are read in one product alone
  /// [ranks, numbers] fp32, where ranks share layers: what each has found of its parts.
  Tensor found;
  bool frozen = false;
  /// [matrices, 2, 2] fp32, tensorwise: the scales of what each matrix's product reads, and of the
  /// matrix, from the forward pass to the backward pass.
  Tensor kept;

  bool any() const { return recipe != Fp8Recipe::none; }
};

/// What all blocks share, for `rows` of a micro-batch, and of an expert; `spec` of this rank's
/// part.
BlockFp8 allocate_fp8(Arena& arena, Fp8Recipe recipe, const DecoderSpec& spec, std::int64_t rows,
                      std::int64_t expert_rows);
/// What a block keeps; absent where its backward pass finds scales of its own.
Tensor allocate_fp8_scales(Arena& arena, const std::string& name, Fp8Recipe recipe,
                           const DecoderSpec& spec);

/// One linear layer: y = x wᵀ. `expert`: which of those that have a matrix of their own each, which
/// no ranks share.
class Fp8Linear {
 public:
  Fp8Linear(const TensorRanks& ranks, const BlockFp8& fp8, Linear l,
            std::optional<std::int64_t> expert = std::nullopt, bool counted = false)
      : device_(ranks.device()),
        ranks_(ranks),
        fp8_(fp8),
        linear_(l),
        expert_(expert.value_or(0)),
        shared_(ranks.divided() && !expert),
        counted_(counted) {}

  void forward(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& bias) const;
  /// What backward() reads of a product that is not made again.
  void repeat(const Tensor& x, const Tensor& w) const;
  /// dw (+)= dyᵀ x unless it is absent, then dx = dy w, which may be in the place of x.
  void backward(const Tensor& dw, bool accumulate, const Tensor& dx, const Tensor& dy,
                const Tensor& x, const Tensor& w) const;

 private:
  enum class Operand : std::uint8_t { input, weight };
  /// A matrix whose scales run over what ranks have parts of.
  struct Joint {
    Tensor from;
    Fp8Over over;
    DType type;
    Tensor scales;
  };
  bool by_rows() const { return fp8_.recipe == Fp8Recipe::rowwise; }
  Tensor kept(Operand which) const;
  /// Ranks have columns of x and w each, and what they make is summed; else rows of w, and columns
  /// of y.
  bool divides_inputs() const;
  bool divides_outputs() const { return shared_ && !divides_inputs(); }
  /// Of what is read forward, which has rows of inputs.
  bool is_joint(Operand which) const {
    return divides_inputs() || (divides_outputs() && which == Operand::weight && !by_rows());
  }
  /// In one exchange.
  void find(const std::vector<Joint>& joint) const;

  Backend& device_;
  const TensorRanks& ranks_;
  const BlockFp8& fp8_;
  Linear linear_;
  std::int64_t expert_;
  bool shared_;   ///< among ranks that have a part of the matrix each
  bool counted_;  ///< rows that the expert was given: others the next time
};

}  // namespace shardplan::validator
