// LAMB: bitsandbytes' kernel, or DeepSpeed's FusedLamb.
#include "optimizers/rules.h"

namespace shardplan::lamb {
namespace {

UpdatePasses passes(const Optimizer&) {
  return {24, 14};
}

/// max_unorm is 1, so that each tensor has the norm of its update beside the moments.
constexpr std::array kStates{State{"state1", StateType::fp32}, State{"state2", StateType::fp32},
                             State{"unorm_vec", StateType::fp32, one_scalar}};
constexpr std::array kVariants{Variant{
    .implementation = OptimizerImplementation::fused, .one_by_one = true, .passes = passes}};
constexpr std::array<std::string_view, 2> kTypes{"Lamb", "OneBitLamb"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "lamb",
    .words = "LAMB",
    .states = kStates,
    .variants = kVariants,
    .deepspeed = {.types = kTypes},
    .evidence = {{{Source::exact, "bitsandbytes' own states on a CPU"},
                  {Source::modelled, "bitsandbytes 0.50 stops"},
                  {Source::modelled, "DeepSpeed ops/lamb/fused_lamb.py read"}}},
    .stops = {"", "bitsandbytes 0.50's kernels stop at sharded parameters (DTensor)", ""},
    .source = "bitsandbytes optim/lamb.py, optim/optimizer.py Optimizer2State",
};

}  // namespace shardplan::lamb
