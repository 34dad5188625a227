// A job's own keys.
#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr std::array kJobOptions{
    special<Plan>({.key = "model",
                   .flag = "--model",
                   .help = "catalogue name, config.json or a size such as 7B",
                   .required = true}),
    special<Plan>({.key = "cluster",
                   .flag = "--cluster",
                   .help = "4xA100-40GB, 2x8xH100, 4x40GB, an instance name",
                   .required = true}),
    option<&Plan::attention>({.key = "attention",
                              .flag = "--attention",
                              .help = "fused (sdpa), or eager, which keeps the scores",
                              .doc = "fused (sdpa), or eager, which keeps s × s scores",
                              .label = "Attention",
                              .choices = kAttentionKinds}),
    option<&Plan::checkpointing>(
        {.key = "checkpointing",
         .flag = "--checkpointing",
         .help = "what is computed again in the backward pass (full: every block)",
         .doc = "what is computed again in the backward pass: nothing, everything but what matrix "
                "products and attention return, or each block",
         .label = "Checkpointing",
         .default_text = "`none`; **`fit`: `full`**",
         .choices = kCheckpointings,
         .changes_passes = true}),
    option<&Plan::loss>({.key = "loss",
                         .flag = "--loss",
                         .help = "whole logits, or in chunks with the head",
                         .doc = "over the whole logits, or with the head in chunks, as Liger does",
                         .label = "Loss",
                         .choices = kLossKinds}),
    option<&Plan::gradient_clipping>({.key = "gradient_clipping",
                                      .flag = "--gradient-clipping",
                                      .help = "largest norm of the gradients; 0 is off",
                                      .numbers = {0, 1e12}}),
    option<&Plan::launch_blocking>(
        {.key = "launch_blocking",
         .flag = "--launch-blocking",
         .help = "CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel",
         .changes_passes = true}),
};

}  // namespace

const OptionTable<Plan>& job_option_table() {
  static constexpr OptionTable<Plan> kTable{"", "", kJobOptions};
  return kTable;
}

}  // namespace shardplan
