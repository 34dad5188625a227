// AdamW: what jobs have that name no optimizer.
#include "optimizers/adam_rules.h"

namespace shardplan::adamw {
namespace {

/// DeepSpeed's "Adam" decays weights as AdamW does unless adam_w_mode is false.
constexpr std::array<std::string_view, 3> kTypes{"AdamW", "Adam", "MuAdamW"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "adamw",
    .words = "AdamW",
    .states = adam::kStates,
    .variants = adam::kVariants,
    .deepspeed = {.types = kTypes, .on_cpu = true, .fused = true},
    .megatron = "adam",
    .native = true,
    .evidence = {{{Source::exact, "records of one GPU and of DDP"},
                  {Source::exact, "records of FSDP2"},
                  {Source::exact, "records of DeepSpeed and Megatron-LM"}}},
    .source = "torch/optim/adam.py; DeepSpeed ops/adam; Transformer Engine's FusedAdam",
};

}  // namespace shardplan::adamw
