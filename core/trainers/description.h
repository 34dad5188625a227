// What a trainer does on its own: the program around a step that calls model, loss and optimizer.
// A trainer is a file here that fills in a TrainerDescription, and a row of the registry. Nobody
// asks which trainer runs a plan; they ask its description.
#pragma once

#include <span>
#include <string_view>

#include "plan/compile.h"
#include "plan/mlp_tiles.h"
#include "rollout/engine.h"
#include "trainers/defaults.h"

namespace shardplan {

struct FusedKernel;
struct OptimizerDescription;

/// An optimizer that a trainer runs from a library of its own under a name that PyTorch has too.
struct OwnOptimizer {
  const OptimizerDescription* named = nullptr;
  const OptimizerDescription* runs = nullptr;
};

/// When a trainer of several models has the allocator give cached segments back to the driver.
struct EmptiesCache {
  bool before_engine_wakes = false;
  bool when_engine_has_weights = false;
  bool when_engine_sleeps = false;
  bool when_parameters_leave = false;  ///< a model's, or its optimizer's states, to the host
  bool after_scores = false;           ///< each model's
  bool around_training = false;        ///< before and after each model's turn
};

/// Seconds of a Python call on the machine that the host's times were counted on (docs/explanation/
/// time.md, "What frameworks ask of the host").
inline constexpr double kPythonCall = 0.83e-6;

/// What a trainer's own Python takes in an iteration around an engine's answers, while nothing else
/// goes on: prompts as tokens, answers as text and as tensors, rewards that cost nothing, means
/// that are logged. In calls of kPythonCall.
struct AnswersHost {
  double calls = 0, of_answer = 0, of_token = 0;
};

/// How weights come to engines on GPUs of their own: NCCL broadcasts them from the trainer's first
/// rank. By default as verl does it (verl/checkpoint_engine/nccl_checkpoint_engine.py), where
/// nothing says the trainer: under Megatron-LM.
struct ApartHandover {
  bool all_ranks = false;      ///< the trainer's other ranks are in the group too
  bool packed = true;          ///< tensors share a message; else each is one
  bool single_experts = true;  ///< each expert's are tensors of their own, as in a checkpoint
};

struct TrainerDescription {
  std::string_view name;         ///< in jobs
  std::string_view words;        ///< for people
  std::string_view spoken = {};  ///< other words for it, blanks between
  /// 16-bit training is torch.autocast around the model's forward, over 16-bit parameters too.
  /// Engines with a precision of their own (DeepSpeed) are called without it.
  bool autocasts = false;
  /// It does so over a framework that casts by a policy of its own too: FSDP2.
  bool autocasts_policies = false;
  /// Over a framework whose policy casts (FSDP), parameters that train are held in fp32 where 16-bit
  /// training is on, whatever type the model was loaded in.
  bool widens_divided = false;
  /// What the model returns in 16 bits is copied to fp32 where autocast is on: the logits.
  bool widens_outputs = false;
  /// Nobody holds what a compiled model returns beside the loss while the backward pass runs, so
  /// that it goes when its gradient is made. Of a loop that was seen in PyTorch's own record of
  /// allocations; runs of transformers' Trainer have it to the end, and why is not known.
  bool frees_outputs = false;
  /// DeepSpeed's engine makes its update within the call for the last backward pass of a step
  /// (accelerate/utils/deepspeed.py, DeepSpeedEngineWrapper.backward).
  bool engine_steps_in_backward = false;
  /// DDP is told to look for parameters without a gradient, unless a model without adapters is
  /// checkpointed.
  bool finds_unused = false;
  /// The host waits for the loss of each micro-batch before it goes on.
  bool waits_for_loss = false;
  /// And sets all modules to training and counts the operations of each micro-batch by their
  /// parameters, in loops over modules.
  bool walks_modules = false;
  /// FSDP reduces gradients after each micro-batch of an accumulation, unless told otherwise; else
  /// whole gradients are kept until the last one.
  bool syncs_each_batch = true;
  /// A quantized base is prepared for training: what stays in 16 bits becomes fp32 (peft's
  /// prepare_model_for_kbit_training).
  bool prepares_kbit = false;
  TileSums tile_sums = TileSums::autograd;  ///< of its function for tiled feed-forwards
  bool tiles_mlps = false;   ///< it has a switch for these, or is a program of the user's own
  bool runs_engines = true;  ///< models in engines of their own: DeepSpeed's
  /// The loss is a sum over tokens, divided by their number in all micro-batches: its gradient is
  /// not one, and a loss that has made its gradients in the forward pass scales them again.
  bool divides_loss = false;
  /// Weights that decay and those that do not are groups of their own to the optimizer.
  bool decays_apart = false;
  /// bitsandbytes' 8-bit optimizers keep the states of embeddings in fp32.
  bool embeddings_in_fp32 = false;
  /// Programs around it cast a model that zero.Init has divided (model.to): assumed, to fp32, where
  /// DeepSpeed's parameter offload follows the cast and the job does not say.
  bool casts_divided_model = false;
  /// ZeRO-3 finds a model that zero.Init has divided, which its engine does not cast: adapters stay
  /// in fp32, as peft makes them (deepspeed/runtime/engine.py, _cast_module_mixed_precision).
  bool loads_divided = false;
  /// Embeddings are told to need a gradient wherever there are adapters, checkpointed or not
  /// (transformers, enable_input_require_grads).
  bool tells_embeddings = false;
  /// Nothing gives back what building the model and the engine left in the allocator's cache. The
  /// loops that were measured do (tests/accuracy/measure/shared/phases.py).
  bool keeps_build_cache = false;
  /// Nothing multiplies before the first step: in its backward pass autograd's thread asks the
  /// allocator for its library's workspace, which then lies where something else had been. The
  /// loops that were measured have multiplied in both threads before
  /// (tests/accuracy/measure/shared/phases.py).
  bool starts_cold = false;
  CompileScope compiles = CompileScope::model;  ///< what its switch for torch.compile does
  /// With that switch it allows fp32 products TF32, but for jobs in fp16.
  bool compiles_in_tf32 = false;
  /// A checkpointed block is computed again up to the last tensor that is saved, as torch's
  /// checkpoint does unless told otherwise; else all of it.
  bool recomputation_stops_early = true;
  /// Of each n blocks the first one is checkpointed (transformers, every_n_layers); else the last
  /// one (torchtitan's layer option).
  bool checkpoints_first_of_each = false;
  /// Under FSDP2 embeddings are a unit of their own, and so are the head and the norm before it,
  /// which stay gathered for the backward pass; a head tied to them makes it one unit.
  bool shards_ends_apart = false;
  /// The last parameter of that one unit is the tied table, as accelerate names its modules (the
  /// norm before the head, embeddings, head: utils/fsdp_utils.py, fsdp2_prepare_model); else the
  /// norm's, as the model has them.
  bool shards_table_last = false;
  /// A pipeline's schedule is told not to return what the last stage makes of each micro-batch
  /// (torchtitan, train.py: return_outputs=False); else it is kept until the next step.
  bool drops_outputs = false;
  /// Under FSDP2 and expert parallelism, experts that no other rank has are given to fully_shard
  /// too, on a mesh of one rank, which copies them for use; else they are left as they are (NeMo
  /// Automodel, moe/parallelizer.py, apply_fsdp).
  bool shards_lone_experts = false;
  /// Under FSDP2 a model that nothing trains (a reference) is one unit: a pass gathers all of it.
  bool shards_frozen_whole = false;
  /// A checkpoint has a file of the trained weights alone beside what an engine writes, whose files
  /// leave frozen parameters out (transformers/trainer.py, _save_checkpoint: save_model, and
  /// save_checkpoint with exclude_frozen_parameters).
  bool saves_weights_apart = false;
  /// Runs workloads of several models.
  bool runs_rlhf = false;
  /// Under LoRA a reference is the trained model with its adapters off.
  bool shares_base = false;
  /// And a frozen copy of the adapters is: a model that comes with adapters gets one ("ref"), as
  /// they may be trained already.
  bool copies_adapters = false;
  /// It hands each completion of a prompt to the engine that has the fewest requests: those of one
  /// prompt are not together.
  bool spreads_completions = false;
  /// Generated sequences are scored as many at a time as are trained on, not all at once.
  bool scores_micro_batches = false;
  /// Ranks of a group divide the tokens of their sequences by means of the trainer's own (Ulysses),
  /// whatever the framework divides.
  bool divides_sequences = false;
  /// To hand weights over it asks FSDP1 for a sharded state_dict, which copies the shards beside
  /// what a unit gathers in the type of the shards (_state_dict_utils.py,
  /// _sharded_post_state_dict_hook).
  bool copies_shards = false;
  /// An engine on the same GPU is given a copy of each tensor, by its address.
  bool copies_handed_tensors = false;
  /// An engine on its GPUs runs in its own processes (vLLM's external_launcher); else in processes
  /// beside them, with CUDA contexts and communicators of their own.
  bool has_engine_inside = false;
  /// As what vLLM takes it, which decides what nobody says (rollout/sizes.h).
  EngineCaller starts_engine = EngineCaller::library;
  /// Tokens of a pass that it asks an engine on its GPUs for, with room for all sequences that
  /// these GPUs generate at once and no others. 0: it asks for neither.
  std::int64_t engine_tokens = 0;
  /// Where it generates, each model is in processes of its own too.
  bool has_models_apart = false;
  EmptiesCache empties_cache;
  /// Of an engine's answers it wants the log-probabilities of all tokens.
  bool asks_log_probabilities = false;
  /// An engine over several GPUs has Ray's workers, for which vLLM does not schedule ahead
  /// (vllm/config/vllm.py).
  bool starts_engines_over_ray = false;
  ApartHandover apart_handover;
  /// Of answers that may wait, one batch is made after the other; else all are made at once.
  bool answers_batch_by_batch = false;
  /// It pauses an engine whose answers go on under new weights, and what is cached stays.
  bool keeps_cache_under_new_weights = false;
  /// It gives the engine's loader one tensor at a time.
  bool loads_each_tensor = false;
  AnswersHost around_answers;
  /// Distillation's loss goes over some rows at a time (ms-swift, gkd_loss.py).
  bool chunks_distillation = false;
  /// Divides its processes by a DeviceMesh of data, sequence and tensor ranks: it opens the groups
  /// of one rank, too.
  bool opens_mesh = false;
  /// Supervised training has a name for the logits that the loss went over until the model has
  /// returned the next ones.
  bool keeps_last_logits = false;
  /// Preference training holds on to all fp32 logits of the trained model while a reference scores.
  bool keeps_logits = false;
  /// Weights that decay and those that do not are groups of their own where a ds_config names the
  /// optimizer, too; else DeepSpeed's engine is given all parameters as one group then.
  bool config_decays_apart = false;
  std::span<const OwnOptimizer> optimizers;
  /// The head and the loss in place of the model's own; null: the model's.
  const FusedKernel* head_loss = nullptr;
  /// What `loss` fused_linear is here; null: Liger's.
  const FusedKernel* fused_head = nullptr;
  /// Log-probabilities of tokens over the logits as they are; null: over fp32 ones. The other one
  /// leaves them whole for the entropy.
  const FusedKernel* token_loss = nullptr;
  const FusedKernel* kept_token_loss = nullptr;
  /// Supervised training takes that loss too, in place of the model's own.
  bool supervises_by_token_loss = false;
  /// What a job that names it has where it says nothing; null: what any job has.
  const TrainerDefaults* defaults = nullptr;
  std::string_view source;  ///< what was read
};

/// The one that runs when a job names `optimizer`.
const OptimizerDescription& optimizer_of(const TrainerDescription& trainer,
                                         const OptimizerDescription& optimizer);

}  // namespace shardplan
