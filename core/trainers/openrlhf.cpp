// OpenRLHF's models, each in a DeepSpeed engine (3c3be623, v0.11.0: openrlhf/utils/deepspeed/
// deepspeed.py). ZeRO-3's are divided while they are loaded (models/actor.py, HfDeepSpeedConfig).
// Supervised training goes over log-probabilities too (trainer/sft_trainer.py). A reference is a
// model of its own, under LoRA as well. Sequences are divided by ring attention where a job asks
// for it (models/ring_attn_utils.py): as many tokens a GPU as Ulysses has.
#include <array>

#include "trainers/description.h"

namespace shardplan {

namespace openrlhf_loss {
extern const FusedKernel kKernel;
}

namespace openrlhf {

namespace {

// cli/train_ppo_ray.py
constexpr std::array kEngines{
    EngineDefaults{.engine = "vllm", .utilization = 0.95, .finds_prefixes = false}};
constexpr TrainerDefaults kDefaults{
    .framework = "deepspeed", .zero_stage = 2, .engines = kEngines, .always_has_engine = true};

}  // namespace

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer{
    .name = "openrlhf",
    .words = "OpenRLHF",
    .waits_for_loss = true,  // trainer/sft_trainer.py, gpt_loss.item()
    .decays_apart = true,    // utils/deepspeed/deepspeed_utils.py, get_optimizer_grouped_parameters
    .loads_divided = true,
    .tells_embeddings = true,  // models/actor.py and models/model.py: enable_input_require_grads
    .keeps_build_cache = true,
    .starts_cold = true,
    .runs_rlhf = true,
    .scores_micro_batches = true,
    .divides_sequences = true,
    .copies_handed_tensors = true,           // trainer/ray/ppo_actor.py, _handle_cuda_ipc
    .starts_engine = EngineCaller::program,  // trainer/ray/vllm_engine.py: AsyncLLMEngine
    .has_models_apart = true,  // trainer/ray/launcher.py: an actor of Ray for each rank of a model
    // trainer/ray/ppo_actor.py, fit (lines 599 and 603) and broadcast_to_vllm (416 and 488);
    // ppo_critic.py, fit (286 and 290); utils/deepspeed/deepspeed_utils.py,
    // offload_deepspeed_states (187); trainer/ppo_utils/experience_maker.py, _dispatch_forward
    // (105).
    .empties_cache = {.before_engine_wakes = true,
                      .when_engine_has_weights = true,
                      .when_parameters_leave = true,
                      .after_scores = true,
                      .around_training = true},
    .starts_engines_over_ray = true,  // trainer/ray/vllm_engine.py, create_vllm_engines
    // trainer/ray/ppo_actor.py, broadcast_to_vllm; trainer/ppo_trainer_async.py,
    // GenerateSamplesActor
    .apart_handover = {.packed = false, .single_experts = false},
    .answers_batch_by_batch = true,
    .loads_each_tensor = true,  // trainer/ray/vllm_worker_wrap.py, update_weight_cuda_ipc
    .opens_mesh = true,         // utils/deepspeed/deepspeed.py, setup_distributed: init_device_mesh
    .keeps_last_logits = true,  // trainer/sft_trainer.py, fit: per_token_log_probs, output
    .config_decays_apart = true,  // utils/deepspeed/deepspeed.py, create_optimizer: its own groups
    .token_loss = &openrlhf_loss::kKernel,
    .kept_token_loss = &openrlhf_loss::kKernel,
    .supervises_by_token_loss = true,
    .defaults = &kDefaults,
    .source = "OpenRLHF 3c3be623, openrlhf/trainer, openrlhf/models, openrlhf/utils/deepspeed",
};

}  // namespace openrlhf

}  // namespace shardplan
