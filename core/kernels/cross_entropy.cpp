// Cross-entropy that writes the gradient over the logits it is given: the fp32 copy that
// transformers' loss makes of them (transformers/loss/loss_utils.py).
#include "kernels/description.h"

namespace shardplan::fused_cross_entropy {

extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "cross_entropy",
    .words = "Liger's cross-entropy",
    .gradients = GradientPlace::inputs,
    .keeps_input = true,
    .host_reads = true,
    .source = "liger_kernel/ops/cross_entropy.py",
};

}  // namespace shardplan::fused_cross_entropy
