// Exchanges among ranks inside a network: when they start, what they are cut into, and which
// products hide them. Where their results lie is the walkers' business (communicate.h).
#pragma once

#include <cstdint>
#include <vector>

#include "program/tape/graph_view.h"
#include "program/tape/kernels.h"
#include "program/tape/writer.h"

namespace shardplan::tape {

class Exchanges {
 public:
  Exchanges(const GraphView& view, TapeWriter& writer, const TapeOptions& options)
      : view_(view), writer_(writer), options_(options) {}

  /// The product of a linear in the forward pass: beside the gather of what it reads or the
  /// reduction of what it makes, where these are cut into parts.
  void launch_forward(const Op& linear, const Kernel& product);
  /// The exchange of `op`, of kind communicate, whose result is a tensor of its own.
  void send_forward(const Op& op, DType type);

  /// The products of a linear in the backward pass. That of its weight is put off where the
  /// exchange of its input's gradient runs beside it.
  void launch_backward(const Op& linear, const LinearBackwardKernels& kernels);
  /// The gradient's exchange of `op`, of kind communicate: beside the products that were put off
  /// for it; a gather beside the products of its own linear.
  void send_backward(const Op& op, DType type);

  /// Sequence parallelism gathers what a linear kept: `bytes` of all ranks together.
  void gather_kept(std::int64_t bytes);

 private:
  /// A value whose parts arrive while linears multiply those that are here.
  struct Arriving {
    ValueId value = kNone;
    std::int32_t last = kNone;  ///< index of the last operation that multiplies it
  };
  void launch_beside_gather(Kernel product, bool last);
  void launch_beside_scatter(Kernel product, const Op& op);

  const GraphView& view_;
  TapeWriter& writer_;
  const TapeOptions& options_;
  Arriving arriving_;
  bool scattered_ = false;  ///< all but the last part of the linear's result that was made last
  std::vector<Kernel> weight_products_;  ///< put off until their layer's exchange has begun
};

}  // namespace shardplan::tape
