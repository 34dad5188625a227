// The head's product and the loss, chunk of tokens after chunk, so that no more logits exist than
// the input has elements (program/tape/fused_loss.h).
#include "kernels/description.h"

namespace shardplan::fused_linear_loss {

extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "fused_linear_cross_entropy",
    .words = "Liger's loss, fused with the head",
    .host_reads = true,
    .source = "liger_kernel/ops/fused_linear_cross_entropy.py",
};

}  // namespace shardplan::fused_linear_loss
