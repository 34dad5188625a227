// Lion: bitsandbytes' or DeepSpeed's kernel (fused), or lion-pytorch's loop.
#include "optimizers/rules.h"

namespace shardplan::lion {
namespace {

bool is_fused(const Optimizer& o) {
  return o.implementation == OptimizerImplementation::fused;
}

std::int64_t of_kernel(const Updated& t, const Optimizer& o) {
  return is_fused(o) ? t.numel : 0;
}
std::int64_t of_loop(const Updated& t, const Optimizer& o) {
  return is_fused(o) ? 0 : t.numel;
}

/// Weight and state read and written, the gradient read.
UpdatePasses fused(const Optimizer&) {
  return {5, 1};
}
UpdatePasses operations(const Optimizer&) {
  return {12, 6};
}

/// bitsandbytes keeps fp32 whatever the parameter's type.
constexpr std::array kStates{State{"state1", StateType::fp32, of_kernel},
                             State{"exp_avg", StateType::plan, of_loop}};
constexpr std::array kLooped{Temporary{.count = 2}};
constexpr std::array kVariants{
    Variant{.implementation = OptimizerImplementation::fused, .one_by_one = true, .passes = fused},
    Variant{.implementation = OptimizerImplementation::for_loop,
            .one_by_one = true,
            .passes = operations,
            .temporaries = kLooped}};
constexpr std::array<std::string_view, 1> kTypes{"Lion"};
constexpr std::array<std::string_view, 1> kSpellings{"lion_32bit"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "lion",
    .words = "Lion",
    .spellings = kSpellings,
    .states = kStates,
    .variants = kVariants,
    .deepspeed = {.types = kTypes, .on_cpu = true},
    .evidence = {{{Source::exact, "bitsandbytes' own states on a CPU"},
                  {Source::modelled, "bitsandbytes 0.50 stops"},
                  {Source::modelled, "DeepSpeed ops/lion/fused_lion.py read"}}},
    .stops = {"", "bitsandbytes 0.50's kernels stop at sharded parameters (DTensor)", ""},
    .source = "bitsandbytes optim/optimizer.py Optimizer1State; DeepSpeed ops/lion; lion-pytorch",
};

}  // namespace shardplan::lion
