// bitsandbytes: AdamW with states of 8 bits in blocks of 256.
#include "optimizers/bitsandbytes_rules.h"

namespace shardplan::adamw_8bit {
namespace {

constexpr std::array kStates = bitsandbytes::states_8bit(0);
constexpr std::array<std::string_view, 1> kSpellings{"adamw_bnb_8bit"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "adamw_8bit",
    .words = "8-bit AdamW",
    .spellings = kSpellings,
    .states = kStates,
    .variants = bitsandbytes::kVariants8Bit,
    .options = bitsandbytes::kOptions,
    .evidence = bitsandbytes::kEvidence,
    .stops = bitsandbytes::kStops,
    .source = "bitsandbytes optim/optimizer.py Optimizer2State",
};

}  // namespace shardplan::adamw_8bit
