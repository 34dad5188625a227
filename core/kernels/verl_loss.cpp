// verl 0.8's log-probabilities (verl/utils/torch_functional.py, logprobs_from_logits): flash-attn's
// cross-entropy over 16-bit logits, whose backward pass writes the gradient over them unless the
// entropy reads them too; and its head in chunks of 512 tokens (use_fused_kernels,
// verl/utils/experimental/torch_functional.py, FusedLinearForPPO).
#include "kernels/description.h"

namespace shardplan {

namespace verl_loss {
extern const FusedKernel kInPlace;
constinit const FusedKernel kInPlace{
    .name = "verl",
    .words = "verl's log-probabilities, in place",
    .gradients = GradientPlace::inputs,
    .keeps_input = true,
    .source = "verl/utils/torch_functional.py of verl 0.8, flash_attn/ops/triton/cross_entropy.py",
};
}  // namespace verl_loss

namespace verl_kept_loss {
extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "verl_kept",
    .words = "verl's log-probabilities beside the entropy",
    .gradients = GradientPlace::fresh,
    .keeps_input = true,
    .source = "verl/workers/actor/dp_actor.py of verl 0.8",
};
}  // namespace verl_kept_loss

namespace verl_head_loss {
/// A chunk of the backward pass has its logits in 16 bits, and in fp32 logits, probabilities, the
/// one-hot labels, their difference and two terms of the gradient.
constexpr std::int64_t kBytesOfALogit = 2 + 6 * 4;
extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "verl_head",
    .words = "verl's log-probabilities, fused with the head",
    .tile = {.tokens = 512, .words = 0, .bytes = kBytesOfALogit},
    .source = "verl/utils/experimental/torch_functional.py of verl 0.8",
};
}  // namespace verl_head_loss

}  // namespace shardplan
