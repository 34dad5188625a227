// TRL's trainers, which are transformers' Trainer with a head and losses of their own (TRL 1.16).
#include <array>

#include "trainers/accelerate.h"

namespace shardplan {

namespace trl_loss {
extern const FusedKernel kKernel;
}

namespace trl {

namespace {

// trainer/grpo_config.py, generation/vllm_generation.py; accelerate casts what FSDP1 trains, and
// with it the base, to fp32.
constexpr std::array kUnder{
    FrameworkDefaults{.framework = "fsdp1", .lora_precision = "bf16-autocast"}};
constexpr std::array kEngines{EngineDefaults{.engine = "vllm",
                                             .utilization = 0.3,
                                             .batched_tokens = 4096,
                                             .completions = 8,
                                             .starts_server = false}};
constexpr TrainerDefaults kDefaults{.under = kUnder, .engines = kEngines};

constexpr TrainerDescription description() {
  TrainerDescription d =
      on_accelerate("trl", "TRL",
                    "transformers 5.17, trainer.py; TRL 1.16, sft_trainer.py, dpo_trainer.py, "
                    "kto_trainer.py, grpo_trainer.py, trainer/utils.py",
                    &trl_loss::kKernel);
  // f2cd57710, generation/vllm_generation.py, sync_weights and generate: before wake_up.
  d.empties_cache.before_engine_wakes = true;
  d.engine_tokens = 4096;                  // __init__: max_num_batched_tokens, max_num_seqs
  d.asks_log_probabilities = true;         // logprobs = 0: those of the tokens that were chosen
  d.loads_each_tensor = true;              // sync_weights
  d.keeps_cache_under_new_weights = true;  // experimental/async_grpo/vllm_client.py, pause
  // grpo_trainer.py, _generate_and_score_completions without its passes, timed without a GPU
  // (tests/accuracy/measure/host_costs/time_trl_host.py): docs/explanation/rlhf.md.
  d.around_answers = {.calls = 2'600, .of_answer = 450, .of_token = 2};
  d.defaults = &kDefaults;
  return d;
}

}  // namespace

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer = description();

}  // namespace trl

}  // namespace shardplan
