// TRL 1.16's loss: log-probabilities of the labels, in tiles of the head's product. Nothing of the
// logits is kept: the backward pass makes each tile again, turns it into its gradient, and adds
// products to fp32 gradients of the whole input and weight, which are cast at the end. What
// supervised fine-tuning computes; no kernel that a job names.
#include "kernels/description.h"

namespace shardplan::trl_loss {

extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "trl",
    .words = "TRL's log-probabilities, fused with the head",
    .tile = {4096, 32768},
    .skips_unscored = true,  // add_fused_lm_head: hidden_states[mask]
    .source = "trl/kernels/chunked_logprob.py, trl/trainer/utils.py of TRL 1.16",
};

}  // namespace shardplan::trl_loss
