// One decoder block, forward and backward:
//
//   x ─┬─ norm1 ─ qkv ─ (head norms) ─ rotary ─ attention ─ out ─┐
//      └───────────────────────── + ────────────────────────────┴─ mid
//   mid ─┬─ norm2 ─ MLP (mlp/) ─┐
//        └───────── + ──────────┴─ the next block's x
//
// Both sums are done by the kernel of the norm that follows. Gradients of activations overwrite the
// activations that are not needed any more, so the backward pass needs two tensors of its own.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/mlp/mlp.h"
#include "engine/network.h"
#include "engine/self_attention.h"
#include "engine/tensor_ranks.h"
#include "model/decoder_layout.h"

namespace shardplan::validator {

/// What a block's forward makes and its backward reads; rows = batch · sequence, part = those that
/// this rank has between the products: rows / ranks that share each layer. Heads and inner width
/// are this rank's.
struct BlockActivations {
  Tensor x;             ///< [part, hidden]
  Tensor mean1, rstd1;  ///< [part]
  Tensor norm1;         ///< [part, hidden]; then its gradient
  Tensor qkv;           ///< [rows, packed]: of the projection
  Tensor head_rstd;     ///< [rows, q + kv heads]; head norms only
  Tensor heads;         ///< [rows, packed]: what attention reads; qkv itself without head norms
  Tensor lse;           ///< [batch, q heads, sequence]
  Tensor attended;      ///< [rows, q heads · head_dim]
  Tensor mid;           ///< [part, hidden]
  Tensor mean2, rstd2;  ///< [part]
  Tensor norm2;         ///< [part, hidden]; then its gradient
  MlpActivations mlp;
  LowRank low;        ///< of adapters
  Tensor fp8_scales;  ///< of products in fp8 (fp8.h)
};

/// What blocks share under Keep::products: what is done again, of one block after the other.
struct SharedActivations {
  BlockActivations made;
  /// [part, hidden]: what the projection behind attention adds, where that is done again.
  Tensor branch;
};

/// Another block's, in the same memory: what the host knows of it is its own.
BlockActivations in_the_place_of(const BlockActivations& other);

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

/// What of a block's pass is its MLP's alone: the experts' unit, and with whom they are divided.
struct BlockExperts {
  UnitTensors unit;
  const ExpertRanks* ranks = nullptr;
  const RouterTally* tally = nullptr;
};

/// What a block's pass needs beside the block's own unit.
struct BlockParts {
  BlockExperts experts;
  BlockQuantized quantized;
  BlockAdapters adapters;  ///< without what a pass keeps
  BlockFp8 fp8;            ///< the same

  /// That of a kind.
  UnitTensors& unit(Unit::Kind kind);
};

class Block {
 public:
  /// `spec` of this rank's part (tensor_share.h).
  Block(const DecoderSpec& spec, const DecoderLayout& layout, const Heads& heads, DType dtype,
        Fp8Recipe fp8, ProductsAgain again, std::unique_ptr<Mlp> mlp)
      : spec_(spec),
        parameters_(layout.block),
        adapters_(layout.adapters),
        heads_(heads),
        dtype_(dtype),
        fp8_(fp8),
        again_(again),
        mlp_(std::move(mlp)) {}

  /// Before any pass; `attention` outlives the block.
  void attend_with(const SelfAttention& attention) { attention_ = &attention; }

  const AdapterParameters& adapters() const { return adapters_; }
  /// Every tensor but x. With Keep::products those that are done again come from `shared`.
  BlockActivations allocate(Arena& arena, const std::string& name, Keep keep,
                            const SharedActivations& shared) const;
  SharedActivations allocate_shared(Arena& arena) const;
  BlockScratch allocate_scratch(Arena& arena) const;

  /// Leaves (mid, branch) as the residual of the next block; writes a.x if `in` has a branch.
  void forward(const TensorRanks& ranks, const Unit& unit, const Tensor& weights,
               const BlockActivations& a, const Residual& in, const Tensor& branch,
               const Tensor& rotary, const BlockParts& parts) const;
  /// Makes again what Keep::products did not keep; `branch`: of the shared tensors.
  void renew(const TensorRanks& ranks, const Unit& unit, const Tensor& weights,
             const BlockActivations& a, const Tensor& branch, const Tensor& rotary,
             const BlockParts& parts) const;
  /// Makes everything again from a.x; `branch` is scratch.
  void repeat(const TensorRanks& ranks, const Unit& unit, const Tensor& weights,
              const BlockActivations& a, const Tensor& branch, const Tensor& rotary,
              const BlockParts& parts) const;
  /// dresidual: the gradient of the block's result, becomes that of its input.
  void backward(const TensorRanks& ranks, const Unit& unit, const Tensor& weights,
                const OpenGradient& gradient, const BlockActivations& a,
                const BlockScratch& scratch, const Tensor& dresidual, const Tensor& rotary,
                const BlockParts& parts) const;

 private:
  void attention_half(const TensorRanks& ranks, const Unit& unit, const Tensor& weights,
                      const BlockActivations& a, const Residual& in, const Tensor& branch,
                      const Tensor& rotary, const BlockLinears& linears) const;
  /// From the first norm's result to what attention reads.
  void project(const TensorRanks& ranks, const Unit& unit, const Tensor& weights,
               const BlockActivations& a, const Tensor& rotary, const BlockLinears& linears) const;
  /// What is added to the residual stream behind attention.
  void project_back(const TensorRanks& ranks, const BlockActivations& a, const Tensor& branch,
                    const BlockLinears& linears) const;
  /// The sum of the residual stream and what attention made of it, and its norm.
  void middle(const TensorRanks& ranks, const Unit& unit, const Tensor& weights,
              const BlockActivations& a, const Tensor& branch) const;
  BlockLinears linears_of(const TensorRanks& ranks, const Unit& unit, const Tensor& weights,
                          const OpenGradient& gradient, const BlockActivations& a,
                          const BlockParts& parts) const;
  void turn_heads(const TensorRanks& ranks, const Unit& unit, const Tensor& weights,
                  const BlockActivations& a, const Tensor& rotary) const;
  /// Rows that this rank has between the products.
  std::int64_t part() const { return heads_.rows() / spec_.share.ranks; }
  NormForward norm1(const Unit& unit, const Tensor& weights, const BlockActivations& a) const;
  NormForward norm2(const Unit& unit, const Tensor& weights, const BlockActivations& a) const;

  DecoderSpec spec_;
  BlockParameters parameters_;
  AdapterParameters adapters_;  ///< rank 0: none
  Heads heads_;
  DType dtype_;
  Fp8Recipe fp8_;
  ProductsAgain again_;  ///< under Keep::products
  std::unique_ptr<Mlp> mlp_;
  const SelfAttention* attention_ = nullptr;
};

}  // namespace shardplan::validator
