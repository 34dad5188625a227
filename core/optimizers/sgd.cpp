// SGD with or without momentum.
#include "optimizers/rules.h"

namespace shardplan::sgd {
namespace {

std::int64_t with_momentum(const Updated& t, const Optimizer& o) {
  return o.momentum != 0 ? t.numel : 0;
}

UpdatePasses passes(const Optimizer& o) {
  return o.momentum != 0 ? UpdatePasses{8.0, 3} : UpdatePasses{3.0, 1};
}

constexpr std::array kStates{State{"momentum_buffer", StateType::plan, with_momentum}};
constexpr std::array kVariants{
    Variant{.implementation = OptimizerImplementation::fused, .passes = passes},
    Variant{.implementation = OptimizerImplementation::foreach, .passes = passes},
    Variant{
        .implementation = OptimizerImplementation::for_loop, .one_by_one = true, .passes = passes}};
constexpr std::array<std::string_view, 2> kTypes{"SGD", "MuSGD"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "sgd",
    .words = "SGD",
    .states = kStates,
    .variants = kVariants,
    .deepspeed = {.types = kTypes},
    .megatron = "sgd",
    .evidence = {{{Source::exact, "a record, and PyTorch's own states on a CPU"},
                  {Source::exact, "PyTorch's own states on two CPU ranks"},
                  {Source::exact, "DeepSpeed's own states on two CPU ranks"}}},
    .source = "torch/optim/sgd.py",
};

}  // namespace shardplan::sgd
