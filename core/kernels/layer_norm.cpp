// LayerNorm in the type of its input: keeps that, mean and reciprocal deviation of each row.
// The gradients of weight and bias are summed apart.
#include "kernels/description.h"

namespace shardplan::fused_layer_norm {

extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "layer_norm",
    .words = "Liger's LayerNorm",
    .partial_sums = 2,
    .source = "liger_kernel/ops/layer_norm.py",
};

}  // namespace shardplan::fused_layer_norm
