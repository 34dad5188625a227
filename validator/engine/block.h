// One decoder block, forward and backward:
//
//   x ─┬─ norm1 ─ qkv ─ (head norms) ─ rotary ─ attention ─ out ─┐
//      └───────────────────────── + ────────────────────────────┴─ mid
//   mid ─┬─ norm2 ─ up ─ activation ─ down ─┐
//        └─────────────── + ───────────────┴─ the next block's x
//
// Both sums are done by the kernel of the norm that follows. Gradients of activations overwrite the
// activations that are not needed any more, so the backward pass needs two tensors of its own.
#pragma once

#include <string>

#include "engine/network.h"
#include "model/decoder_layout.h"

namespace shardplan::validator {

/// What a block's forward makes and its backward reads; rows = batch · sequence.
struct BlockActivations {
  Tensor x;             ///< [rows, hidden]
  Tensor mean1, rstd1;  ///< [rows]
  Tensor norm1;         ///< [rows, hidden]; then its gradient
  Tensor qkv;           ///< [rows, packed]: of the projection
  Tensor head_rstd;     ///< [rows, q + kv heads]; head norms only
  Tensor heads;         ///< [rows, packed]: what attention reads; qkv itself without head norms
  Tensor lse;           ///< [batch, q heads, sequence]
  Tensor attended;      ///< [rows, q heads · head_dim]
  Tensor mid;           ///< [rows, hidden]
  Tensor mean2, rstd2;  ///< [rows]
  Tensor norm2;         ///< [rows, hidden]; then its gradient
  Tensor up;            ///< [rows, up width]; then its gradient
  Tensor activated;     ///< [rows, inner]; then its gradient
};

/// Gradients that have no activation to overwrite.
struct BlockScratch {
  Tensor dattended;  ///< [rows, q heads · head_dim]
  Tensor dqkv;       ///< [rows, packed]
};

/// The residual stream between blocks: x + branch, not added yet. No branch: x is the sum.
struct Residual {
  Tensor x;
  Tensor branch;
};

class Block {
 public:
  Block(const DecoderSpec& spec, const BlockParameters& parameters, const Heads& heads, DType dtype)
      : spec_(spec), parameters_(parameters), heads_(heads), dtype_(dtype) {}

  /// Every tensor but x. With Keep::products those that are done again come from `shared`.
  BlockActivations allocate(Arena& arena, const std::string& name, Keep keep,
                            const BlockActivations& shared) const;
  /// The tensors that blocks share under Keep::products.
  BlockActivations allocate_shared(Arena& arena) const;
  BlockScratch allocate_scratch(Arena& arena) const;

  /// Leaves (mid, branch) as the residual of the next block; writes a.x if `in` has a branch.
  void forward(Backend& device, const Unit& unit, const Tensor& weights, const BlockActivations& a,
               const Residual& in, const Tensor& branch, const Tensor& rotary) const;
  /// Makes again what Keep::products did not keep.
  void renew(Backend& device, const Unit& unit, const Tensor& weights, const BlockActivations& a,
             const Tensor& rotary) const;
  /// Makes everything again from a.x; `branch` is scratch.
  void repeat(Backend& device, const Unit& unit, const Tensor& weights, const BlockActivations& a,
              const Tensor& branch, const Tensor& rotary) const;
  /// dresidual: the gradient of the block's result, becomes that of its input.
  void backward(Backend& device, const Unit& unit, const Tensor& weights,
                const OpenGradient& gradient, const BlockActivations& a,
                const BlockScratch& scratch, const Tensor& dresidual, const Tensor& rotary) const;

 private:
  void attention_half(Backend& device, const Unit& unit, const Tensor& weights,
                      const BlockActivations& a, const Residual& in, const Tensor& branch,
                      const Tensor& rotary) const;
  void mlp_half(Backend& device, const Unit& unit, const Tensor& weights, const BlockActivations& a,
                const Tensor& branch) const;
  void turn_heads(Backend& device, const Unit& unit, const Tensor& weights,
                  const BlockActivations& a, const Tensor& rotary) const;
  NormForward norm1(const Unit& unit, const Tensor& weights, const BlockActivations& a) const;
  NormForward norm2(const Unit& unit, const Tensor& weights, const BlockActivations& a) const;

  DecoderSpec spec_;
  BlockParameters parameters_;
  Heads heads_;
  DType dtype_;
};

}  // namespace shardplan::validator
