// NeMo RL's workers (7ea279abf: nemo_rl/models/policy/workers). The forward is under autocast over
// fp32 shards, and FSDP2 hands its outputs on in fp32 (nemo_rl/models/automodel/setup.py,
// MixedPrecisionPolicy). Blocks are units, embeddings and head are in the root's. A reference's
// weights are on the host and take the model's place (use_reference_model).
#include <array>

#include "trainers/description.h"

namespace shardplan::nemo_rl {

namespace {

constexpr FrameworkDefaults under_fsdp(std::string_view framework) {
  return {.framework = framework,
          .reduced = "fp32",
          .precision = "bf16-autocast",
          .optimizer = "for-loop"};
}

// examples/configs/ grpo_math_1B.yaml; vLLM's sizes as engine/arg_utils.py of 0.20 has them for the
// class LLM.
constexpr std::array kUnder{
    under_fsdp("fsdp1"), under_fsdp("fsdp2"),
    FrameworkDefaults{
        .framework = "megatron", .has_own_workers = true, .asks_log_probabilities = true}};
constexpr std::array kEngines{
    EngineDefaults{.engine = "vllm",
                   .utilization = 0.6,
                   .sleep_level = 1,
                   .batched_tokens = 16384,
                   .sequences = 1024},
    EngineDefaults{.engine = "sglang", .utilization = 0.88, .sleep_level = 2}};
constexpr TrainerDefaults kDefaults{.framework = "fsdp2",
                                    .under = kUnder,
                                    .engines = kEngines,
                                    .always_has_engine = true,
                                    .reference_on_host = true,
                                    .actor_on_host = true};

}  // namespace

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer{
    .name = "nemo_rl",
    .words = "NeMo RL",
    .spoken = "nemo rl",
    .autocasts = true,
    .autocasts_policies = true,
    .widens_outputs = true,
    .runs_engines = false,
    .divides_loss = true,
    .runs_rlhf = true,
    .shares_base = true,
    .scores_micro_batches = true,
    // dtensor_policy_worker_v2.py and megatron_policy_worker.py: offload_before_refit,
    // offload_after_refit, prepare_for_lp_inference, move_to_cpu.
    .empties_cache = {.before_engine_wakes = true,
                      .when_engine_has_weights = true,
                      .when_engine_sleeps = true,
                      .when_parameters_leave = true},
    .asks_log_probabilities = true,  // generation/vllm/vllm_worker.py, _build_sampling_params
    // generation/vllm/worker_utils.py, resolve_distributed_executor_backend
    .starts_engines_over_ray = true,
    // nemo_rl/algorithms/grpo.py, init_collective and refit_policy_generation;
    // nemo_rl/utils/packed_tensor.py
    .apart_handover = {.all_ranks = true},
    .defaults = &kDefaults,
    .source = "NeMo RL 7ea279abf, nemo_rl/models/policy/workers, nemo_rl/algorithms/grpo.py",
};

}  // namespace shardplan::nemo_rl
