// What transformers' Trainer does, and with it everything that is built on it.
#pragma once

#include <array>

#include "trainers/description.h"

namespace shardplan {

namespace adafactor {
extern const OptimizerDescription kDescription;
}
namespace adafactor_transformers {
extern const OptimizerDescription kDescription;
}

/// Trainer's "adafactor" is transformers' own class (transformers/trainer_optimizer.py).
inline constexpr std::array kTransformersOptimizers{
    OwnOptimizer{&adafactor::kDescription, &adafactor_transformers::kDescription}};

/// accelerate 1.15 wraps the forward in autocast and casts what it returns to fp32
/// (accelerator.py, prepare_model; utils/operations.py, ConvertOutputsToFp32), though not over
/// FSDP2
/// (_prepare_fsdp2; four histories of allocations have neither), and keeps whole
/// gradients between micro-batches (no_sync); FSDP's parameters are upcast (utils/fsdp_utils.py,
/// fsdp2_prepare_model; accelerator.py, prepare_model: two runs have confirmed FSDP2's); under FSDP2 it shards embeddings and head apart
/// (utils/fsdp_utils.py, fsdp2_prepare_model). DDP looks for unused parameters
/// (transformers/trainer.py, _build_accelerator_args). transformers 5.17 asks after each
/// micro-batch whether the loss is a number (trainer.py, logging_nan_inf_filter) and counts its
/// operations (floating_point_ops), sets all modules to training before it (training_step), divides
/// the loss by num_items_in_batch, and tells bitsandbytes to leave embeddings alone
/// (create_optimizer). With torch_compile it allows TF32 (training_args.py, "9. TF32"). Where a
/// ds_config names the optimizer, its parameters are one group (transformers/integrations/
/// deepspeed.py, deepspeed_optim_sched: DummyOptim).
/// Preference training on it is TRL's: references are prepared by prepare_fsdp
/// (trl/models/utils.py), which calls fully_shard on the root alone; under LoRA the base with its
/// adapters off is the reference, or, of a model that was given with adapters, with a copy of them
/// (dpo_trainer.py; not where TRL itself is told what to adapt: the larger of both is taken);
/// scores are made of as many sequences as are trained on (grpo_trainer.py,
/// _generate_and_score_completions), and a colocated engine is inside the trainer's processes
/// (generation/vllm_generation.py: external_launcher). Trainers that make all logits, TRL's
/// before 1.11 and those of LLaMA-Factory and ms-swift, have names for them until the loss is made,
/// the reference's pass included.
constexpr TrainerDescription on_accelerate(std::string_view name, std::string_view words,
                                           std::string_view source,
                                           const FusedKernel* head_loss = nullptr) {
  return {.name = name,
          .words = words,
          .autocasts = true,
          .widens_divided = true,
          .widens_outputs = true,
          .engine_steps_in_backward = true,
          .finds_unused = true,
          .waits_for_loss = true,
          .walks_modules = true,
          .syncs_each_batch = false,
          .prepares_kbit = true,
          .divides_loss = true,
          .decays_apart = true,
          .embeddings_in_fp32 = true,
          .casts_divided_model = true,
          .loads_divided = true,
          .keeps_build_cache = true,
          .starts_cold = true,
          .compiles_in_tf32 = true,
          .checkpoints_first_of_each = true,
          .shards_ends_apart = true,
          .shards_table_last = true,
          .shards_frozen_whole = true,
          .saves_weights_apart = true,
          .runs_rlhf = true,
          .shares_base = true,
          .copies_adapters = head_loss != nullptr,
          .scores_micro_batches = true,
          .has_engine_inside = true,
          // TRL 1.16, generation/vllm_client.py, update_named_param: a request and a broadcast each
          .apart_handover = {.packed = false, .single_experts = false},
          .chunks_distillation = head_loss == nullptr,
          .keeps_logits = head_loss == nullptr,
          .optimizers = kTransformersOptimizers,
          .head_loss = head_loss,
          .source = source};
}

}  // namespace shardplan
