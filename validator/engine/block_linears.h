// The matrix products of one block in one pass: y = x wᵀ + b, in fp8 or as computed, and what
// adapters add to it, as computed.
#pragma once

#include <utility>

#include "engine/fp8.h"
#include "engine/lora/adapters.h"
#include "engine/lora/quantized.h"
#include "engine/unit_tensors.h"
#include "model/decoder_layout.h"

namespace shardplan::validator {

class BlockLinears {
 public:
  BlockLinears(const TensorRanks& ranks, const BlockParameters& parameters,
               const UnitTensors& block, BlockQuantized quantized, BlockAdapters adapters,
               BlockFp8 fp8)
      : ranks_(ranks),
        device_(ranks.device()),
        parameters_(parameters),
        block_(block),
        quantized_(std::move(quantized)),
        adapters_(std::move(adapters)),
        fp8_(std::move(fp8)) {}

  /// Of this pass.
  const BlockFp8& fp8() const { return fp8_; }
  const BlockAdapters& adapters() const { return adapters_; }
  const BlockQuantized& quantized() const { return quantized_; }
  /// `biased`: this rank is the one that adds the bias, if there is any.
  void forward(Linear l, const Tensor& y, const Tensor& x, bool biased = true) const;
  /// What backward() reads of a product that is not made again.
  void repeat_read(Linear l, const Tensor& x) const;
  /// The gradients of what is trained, then, in the place of x or elsewhere, of x; returns whether
  /// that one is needed, and so made.
  bool backward(Linear l, const Tensor& dy, const Tensor& x, const Tensor& dx) const;

 private:
  Tensor weight(Linear l) const;

  const TensorRanks& ranks_;
  Backend& device_;
  const BlockParameters& parameters_;
  UnitTensors block_;
  BlockQuantized quantized_;
  BlockAdapters adapters_;
  BlockFp8 fp8_;
};

}  // namespace shardplan::validator
