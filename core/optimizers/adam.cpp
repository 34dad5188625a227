// Adam: AdamW's states and step.
#include "optimizers/adam_rules.h"

namespace shardplan::adam {
namespace {

/// The 1-bit variants keep their moments as Adam does, and errors of the compression beside them,
/// which are not counted.
constexpr std::array<std::string_view, 4> kTypes{"Adam", "OneBitAdam", "ZeroOneAdam", "MuAdam"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "adam",
    .words = "Adam",
    .states = adam::kStates,
    .variants = adam::kVariants,
    .deepspeed = {.types = kTypes, .on_cpu = true, .fused = true},
    .megatron = "adam",
    .evidence = {{{Source::exact, "a record with amsgrad, and AdamW's"},
                  {Source::exact, "AdamW's records: the same class"},
                  {Source::exact, "AdamW's records: the same class"}}},
    .source = "torch/optim/adam.py; DeepSpeed ops/adam",
};

}  // namespace shardplan::adam
