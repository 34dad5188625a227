// bitsandbytes: 8-bit AdamW with its states in managed memory.
#include "optimizers/bitsandbytes_rules.h"

namespace shardplan::paged_adamw_8bit {
namespace {

constexpr std::array kStates = bitsandbytes::states_8bit(bitsandbytes::kPagedFrom);

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "paged_adamw_8bit",
    .words = "paged 8-bit AdamW",
    .states = kStates,
    .variants = bitsandbytes::kVariants8Bit,
    .options = bitsandbytes::kOptions,
    .evidence = bitsandbytes::kPagedEvidence,
    .stops = bitsandbytes::kStops,
    .source = "bitsandbytes optim/optimizer.py Optimizer2State",
};

}  // namespace shardplan::paged_adamw_8bit
