// Checkpointing policies as an object of a job.
#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr std::array kCheckpointingOptions{
    option<&Plan::checkpointing>({.key = "policy",
                                  .help = "what is computed again",
                                  .choices = kCheckpointPolicies,
                                  .required = true}),
    option<&Plan::checkpoint_share, &CheckpointShare::every>(
        {.key = "every",
         .help = "each n-th product (selective_op) or block (blocks) is computed again",
         .default_text = "`selective_op`: 2",
         .integers = {1, 1 << 20},
         .changes_passes = true}),
    option<&Plan::checkpoint_share, &CheckpointShare::count>(
        {.key = "count",
         .help = "the first n blocks, of each pipeline stage, are computed again (blocks)",
         .default_text = "",
         .integers = {1, 1 << 20},
         .changes_passes = true}),
    option<&Plan::checkpoint_share, &CheckpointShare::offload>(
        {.key = "offload",
         .help = "what is kept waits on the host for the backward pass",
         .changes_passes = true}),
};

}  // namespace

const OptionTable<Plan>& checkpointing_table() {
  static constexpr OptionTable<Plan> kTable{"checkpointing", "", kCheckpointingOptions};
  return kTable;
}

}  // namespace shardplan
