// The loss that aligns a sequence's labels with its positions (connectionist temporal
// classification).
#pragma once

#include "model/layers/basic.h"

namespace shardplan {

struct CtcOptions {
  bool mean = false;             ///< over labels and sequences; else the sum
  bool zeroes_infinite = false;  ///< ctc_zero_infinity
};

/// F.ctc_loss over log_softmax(logits, dtype=float32), by ATen's own kernels: logits [tokens,
/// vocabulary], as many labels of each sequence as the workload's target length.
ValueId ctc_loss(Graph& g, const CtcOptions& options, ValueId logits);

}  // namespace shardplan
