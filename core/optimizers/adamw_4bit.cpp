// torchao's AdamW4bit: states of 4 bits in blocks of 128.
#include "optimizers/rules.h"

namespace shardplan::adamw_4bit {
namespace {

constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kCodes = 16;  ///< values that a code stands for, a table with each state

bool quantizes(const Updated& t) {
  return t.numel >= kLeastQuantized && t.numel % kBlock == 0;
}
std::int64_t codes(const Updated& t, const Optimizer&) {
  return quantizes(t) ? t.numel / 2 : 0;
}
std::int64_t scales(const Updated& t, const Optimizer&) {
  return quantizes(t) ? t.numel / kBlock : 0;
}
std::int64_t table(const Updated& t, const Optimizer&) {
  return quantizes(t) ? kCodes : 0;
}
std::int64_t small(const Updated& t, const Optimizer&) {
  return quantizes(t) ? 0 : t.numel;
}

UpdatePasses passes(const Optimizer&) {
  return {9, 1};
}

constexpr std::array kStates{State{"exp_avg.codes", StateType::byte, codes},
                             State{"exp_avg.scale", StateType::fp32, scales},
                             State{"exp_avg.qmap", StateType::fp32, table},
                             State{"exp_avg_sq.codes", StateType::byte, codes},
                             State{"exp_avg_sq.scale", StateType::fp32, scales},
                             State{"exp_avg_sq.qmap", StateType::fp32, table},
                             State{"exp_avg", StateType::plan, small},
                             State{"exp_avg_sq", StateType::plan, small}};
/// Both moments in fp32 while they are quantized again.
constexpr std::array kWidened{Temporary{.count = 2, .type = StateType::fp32}};
constexpr std::array kVariants{Variant{.implementation = OptimizerImplementation::fused,
                                       .one_by_one = true,
                                       .passes = passes,
                                       .temporaries = kWidened}};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "adamw_4bit",
    .words = "4-bit AdamW",
    .states = kStates,
    .variants = kVariants,
    .evidence = {{{Source::exact, "torchao's own states on a CPU"},
                  {Source::exact, "torchao's own states on two CPU ranks"},
                  {Source::modelled, "torchao optim/adam.py read: its rules for one long vector"}}},
    .source = "torchao optim/adam.py, optim/subclass_4bit.py",
};

}  // namespace shardplan::adamw_4bit
