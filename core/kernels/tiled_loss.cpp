// ALST's loss: head and cross-entropy over parts of the rows, by PyTorch's operations. Each part
// has its backward pass within the forward pass, so that logits of one part are there at a time,
// and the gradients of the head's input and weight from then on. As many parts as leave 1 GiB of
// fp32 logits to each (ArcticTraining, arctic_training/trainer/sft_trainer.py).
#include "kernels/description.h"

namespace shardplan::tiled_loss {

extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "tiled",
    .words = "the loss and the head over parts of the rows",
    .part_bytes = std::int64_t{1} << 30,
    .source =
        "deepspeed/runtime/sequence_parallel/ulysses_sp.py of DeepSpeed 0.19.6, "
        "TiledFusedLogitsLoss",
};

}  // namespace shardplan::tiled_loss
