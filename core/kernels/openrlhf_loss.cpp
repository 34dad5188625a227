// OpenRLHF's log-probabilities (3c3be623, openrlhf/models/actor.py, forward; models/utils.py,
// log_probs_from_logits): logits cast to fp32, and flash-attn's cross-entropy over them, whose
// backward pass makes their gradient in a tensor of its own.
#include "kernels/description.h"

namespace shardplan::openrlhf_loss {

extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "openrlhf",
    .words = "OpenRLHF's log-probabilities",
    .gradients = GradientPlace::fresh,
    .keeps_input = true,
    .in_fp32 = true,
    .source =
        "openrlhf/models/utils.py of OpenRLHF 3c3be623, "
        "flash_attn/ops/triton/cross_entropy.py",
};

}  // namespace shardplan::openrlhf_loss
