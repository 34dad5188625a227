// Adagrad. PyTorch's fused kernel for it runs on CPUs only.
#include "optimizers/rules.h"

namespace shardplan::adagrad {
namespace {

UpdatePasses passes(const Optimizer&) {
  return {13, 6};
}

constexpr std::array kStates{State{"sum"}};
/// _multi_tensor_adagrad: the standard deviation and the numerator.
constexpr std::array kListed{Temporary{.of = Temporary::Of::all, .count = 2}};
constexpr std::array kLooped{Temporary{.count = 2}};
constexpr std::array kVariants{Variant{.implementation = OptimizerImplementation::foreach,
                                       .passes = passes,
                                       .temporaries = kListed},
                               Variant{.implementation = OptimizerImplementation::for_loop,
                                       .one_by_one = true,
                                       .passes = passes,
                                       .temporaries = kLooped}};
constexpr std::array<std::string_view, 1> kTypes{"Adagrad"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "adagrad",
    .words = "Adagrad",
    .states = kStates,
    .variants = kVariants,
    .made_when_constructed = true,
    .deepspeed = {.types = kTypes, .on_cpu = true},
    .evidence = {{{Source::exact, "a record, and PyTorch's own states on a CPU"},
                  {Source::exact, "PyTorch's own states on two CPU ranks"},
                  {Source::exact, "DeepSpeed's own states on two CPU ranks"}}},
    .source = "torch/optim/adagrad.py",
};

}  // namespace shardplan::adagrad
