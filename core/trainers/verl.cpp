// verl's workers over FSDP (0.8: verl/workers/fsdp_workers.py, actor/dp_actor.py). The forward is
// under autocast, each micro-batch reduces its gradients, and blocks are recomputed by torch's
// checkpoint without reentrance. apply_fsdp2 makes a unit of each block and of embeddings that are
// not tied. A reference is a module of its own whose shards stay on the host, or under LoRA the
// actor with its adapters off. Sequences are divided by Ulysses where a job asks for it
// (verl/models/transformers/monkey_patch.py).
#include <array>

#include "base/units.h"
#include "trainers/description.h"

namespace shardplan {

namespace verl_loss {
extern const FusedKernel kInPlace;
}
namespace verl_kept_loss {
extern const FusedKernel kKernel;
}
namespace verl_head_loss {
extern const FusedKernel kKernel;
}

namespace verl {

namespace {

// trainer/config/actor/dp_actor.yaml, engine/fsdp.yaml, rollout/rollout.yaml,
// workers/config/optimizer.py (torch.optim.AdamW), workers/actor/megatron_actor.py.
constexpr FrameworkDefaults under_fsdp(std::string_view framework) {
  return {.framework = framework,
          .reduced = "fp32",
          .precision = "bf16-autocast",
          .optimizer = "foreach",
          .reference_shards_on_host = true};
}

constexpr std::array kUnder{under_fsdp("fsdp1"), under_fsdp("fsdp2"),
                            FrameworkDefaults{.framework = "megatron",
                                              .has_own_workers = true,
                                              .overlaps = false,
                                              .scores_entropy = true}};

constexpr EngineDefaults started(std::string_view engine) {
  return {.engine = engine,
          .utilization = 0.5,
          .sleep_level = 2,
          .batched_tokens = 8192,
          .sequences = 256,
          .bucket = 2048 * kMiB};
}

constexpr std::array kEngines{started("vllm"), started("sglang")};

constexpr TrainerDefaults kDefaults{
    .framework = "fsdp1", .under = kUnder, .engines = kEngines, .judges_by_function = true};

}  // namespace

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer{
    .name = "verl",
    .words = "verl",
    .autocasts = true,
    .autocasts_policies = true,
    .tile_sums = TileSums::hooks,  // verl/models/transformers/tiled_mlp.py
    .tiles_mlps = true,
    .runs_engines = false,
    .shards_ends_apart = true,
    .runs_rlhf = true,
    .shares_base = true,
    .spreads_completions = true,  // experimental/agent_loop/agent_loop.py, _choose_server
    .scores_micro_batches = true,
    .divides_sequences = true,
    .copies_shards = true,
    // fsdp_workers.py, rollout_mode and trainer_mode (aggressive_empty_cache); utils/fsdp_utils.py,
    // offload_fsdp_model_to_cpu. The table's own version (2025-04, c62e7ac7b) does the same.
    .empties_cache = {.before_engine_wakes = true,
                      .when_engine_has_weights = true,
                      .when_engine_sleeps = true,
                      .when_parameters_leave = true},
    .fused_head = &verl_head_loss::kKernel,
    .token_loss = &verl_loss::kInPlace,
    .kept_token_loss = &verl_kept_loss::kKernel,
    .defaults = &kDefaults,
    .source = "verl 0.8, verl/workers/fsdp_workers.py, verl/workers/actor/dp_actor.py",
};

}  // namespace verl

}  // namespace shardplan
