// The second half of a block, between its norm and the residual stream: one MLP for all tokens
// (dense.cpp), or one of several for each (experts.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/block_linears.h"
#include "engine/mlp/expert_ranks.h"
#include "engine/mlp/expert_slots.h"
#include "engine/network.h"
#include "engine/tensor_ranks.h"
#include "model/decoder_layout.h"

namespace shardplan::validator {

/// What the forward pass makes and the backward pass reads. rows: of a micro-batch, this rank's;
/// of experts those between the products; slots: rows of experts, one for each row that an expert
/// may be given (expert_operands.h).
struct MlpActivations {
  Tensor up;         ///< [rows or slots, up width]; then its gradient
  Tensor activated;  ///< [rows or slots, inner]; then its gradient
  // Of experts.
  Tensor logits;    ///< [rows, experts]; then its gradient
  Tensor weights;   ///< [rows, experts of a token]; then its gradient
  Tensor chosen;    ///< [rows, experts of a token] int32
  Tensor places;    ///< [rows, experts of a token] int32: where in `returned`
  Tensor sources;   ///< [slots] int32: the row of each slot
  Tensor counts;    ///< [experts] int32: assignments
  Tensor entered;   ///< [slots, hidden]: what this rank's experts read; then its gradient
  Tensor returned;  ///< [slots, hidden]: what experts made of this rank's rows; then its gradient
  /// `counts` on the host, where an expert's slots are as many as it is given.
  std::shared_ptr<std::vector<std::int32_t>> counted;
};

/// Those of a block that an MLP may read.
struct MlpParameters {
  UnitTensors block;
  const BlockLinears& linears;  ///< of blocks without experts; adapters and 4 bits of all
  UnitTensors experts;          ///< of blocks that have any; none where they have 4 bits
};

/// Experts that got no row, of the layers and micro-batches of a step.
struct IdleExperts {
  std::int64_t layers = 0, experts = 0;

  void count(const std::vector<std::int32_t>& rows) {
    ++layers;
    experts += std::count(rows.begin(), rows.end(), 0);
  }
  double mean() const {
    return layers == 0 ? 0 : static_cast<double>(experts) / static_cast<double>(layers);
  }
};

/// What the routers of a micro-batch count together.
struct RouterTally {
  Tensor balance;   ///< [2, experts], of the load-balancing loss (RouteForward); absent without one
  float slope = 0;  ///< of the loss, as RouteBackward::balance_scale
  Tensor dropped;   ///< [1]: assignments that had no slot; absent where none is dropped
  IdleExperts* idle = nullptr;  ///< null: with a capacity every expert computes
};

/// With whom it is divided, and what it adds to; the latter two of networks with experts.
struct MlpRanks {
  const TensorRanks& tensor;
  const ExpertRanks* experts = nullptr;
  const RouterTally* tally = nullptr;
};

class Mlp {
 public:
  virtual ~Mlp() = default;
  Mlp() = default;
  Mlp(const Mlp&) = delete;
  Mlp& operator=(const Mlp&) = delete;

  /// Rows of its experts; 0: it has none.
  virtual std::int64_t slots() const { return 0; }

  /// With Keep::products what is made again comes from `shared`.
  virtual MlpActivations allocate(Arena& arena, const std::string& name, Keep keep,
                                  const MlpActivations& shared) const = 0;
  virtual MlpActivations allocate_shared(Arena& arena) const = 0;

  /// x: [this rank's rows between the products, hidden]; result: the same shape.
  virtual void forward(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
                       const Tensor& x, const Tensor& result) const = 0;
  /// The same, without the result.
  virtual void repeat(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
                      const Tensor& x) const = 0;
  /// Makes again what Keep::products did not keep.
  virtual void renew(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
                     const Tensor& x) const = 0;
  /// x becomes its gradient, given the result's; false: nothing needs it, and it is not made.
  virtual bool backward(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
                        const Tensor& x, const Tensor& dresult) const = 0;
};

/// `spec` of this rank's part; rows of a micro-batch.
std::unique_ptr<Mlp> make_dense_mlp(const DecoderSpec& spec, std::int64_t rows, DType dtype,
                                    ProductsAgain again);
std::unique_ptr<Mlp> make_expert_mlp(const DecoderSpec& spec, int router,
                                     const ExpertParameters& parameters, const ExpertSlots& slots,
                                     DType dtype, ProductsAgain again);

}  // namespace shardplan::validator
