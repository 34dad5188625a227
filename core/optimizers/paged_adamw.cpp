// bitsandbytes: AdamW with fp32 states in managed memory.
#include "optimizers/bitsandbytes_rules.h"

namespace shardplan::paged_adamw {
namespace {

constexpr std::array kStates{State{"state1", StateType::fp32, nullptr, bitsandbytes::kPagedFrom},
                             State{"state2", StateType::fp32, nullptr, bitsandbytes::kPagedFrom}};
constexpr std::array<std::string_view, 1> kSpellings{"paged_adamw_32bit"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "paged_adamw",
    .words = "paged AdamW",
    .spellings = kSpellings,
    .states = kStates,
    .variants = bitsandbytes::kVariants32Bit,
    .evidence = bitsandbytes::kPagedEvidence,
    .stops = bitsandbytes::kStops,
    .source = "bitsandbytes optim/optimizer.py Optimizer2State",
};

}  // namespace shardplan::paged_adamw
