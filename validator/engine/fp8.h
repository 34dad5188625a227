// The matrix products of a block in 8-bit floating point (device/fp8.h): operands are rounded for
// each product, into room that all products take turns in.
#pragma once

#include <cstdint>
#include <string>

#include "device/backend.h"
#include "memory/arena.h"
#include "model/adapter_layout.h"
#include "model/spec.h"

namespace shardplan::validator {

/// Of one block in one pass.
struct BlockFp8 {
  Fp8Recipe recipe = Fp8Recipe::none;
  Tensor room;    ///< bytes: the operands of one product
  Tensor scales;  ///< fp32: those of operands that are read in one product alone
  /// [matrices, 2, 2] fp32, tensorwise: the scales of what each matrix's product reads, and of the
  /// matrix, from the forward pass to the backward pass.
  Tensor kept;

  bool any() const { return recipe != Fp8Recipe::none; }
};

/// What all blocks share, for `rows` of a micro-batch; `spec` of this rank's part.
BlockFp8 allocate_fp8(Arena& arena, Fp8Recipe recipe, const DecoderSpec& spec, std::int64_t rows);
/// What a block keeps; absent where its backward pass finds scales of its own.
Tensor allocate_fp8_scales(Arena& arena, const std::string& name, Fp8Recipe recipe);

/// One linear layer: y = x wᵀ.
class Fp8Linear {
 public:
  Fp8Linear(Backend& device, const BlockFp8& fp8, Linear l)
      : device_(device), fp8_(fp8), linear_(l) {}

  void forward(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& bias) const;
  /// What backward() reads of a product that is not made again.
  void repeat(const Tensor& x, const Tensor& w) const;
  /// dw (+)= dyᵀ x, then dx = dy w, which may be in the place of x.
  void backward(const Tensor& dw, bool accumulate, const Tensor& dx, const Tensor& dy,
                const Tensor& x, const Tensor& w) const;

 private:
  enum class Operand : std::uint8_t { input, weight };
  bool by_rows() const { return fp8_.recipe == Fp8Recipe::rowwise; }
  Tensor kept(Operand which) const;

  Backend& device_;
  const BlockFp8& fp8_;
  Linear linear_;
};

}  // namespace shardplan::validator
