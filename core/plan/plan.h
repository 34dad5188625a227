// Everything the user chooses about a training run, resolved and validated: pure data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/stored_format.h"
#include "frameworks/framework.h"
#include "hardware/cluster.h"
#include "kernels/description.h"
#include "plan/checkpointing.h"
#include "plan/compile.h"
#include "plan/lengths.h"
#include "plan/optimizer.h"
#include "plan/parallel.h"
#include "plan/precision.h"
#include "rollout/engine.h"

namespace shardplan {

enum class AttentionKind : std::uint8_t { sdpa, eager };

/// Whose kernel fused attention is. PyTorch's scaled_dot_product_attention takes cuDNN's on Hopper
/// from 2.11 on, FlashAttention-2 from 2.5.1 to 2.10 (torch.nn.attention.SDPBackend). The package
/// flash-attn 2 is called in its place (attn_implementation: flash_attention_2).
enum class SdpaKernel : std::uint8_t { cudnn_attention, flash_attention, flash_attn };

/// What runs layers with a state: PyTorch's own operations, or the kernels of the libraries that
/// transformers takes where they are installed (mamba_ssm, causal_conv1d, flash-linear-attention).
enum class StateKernels : std::uint8_t { torch, fused };

/// The loss of language models: Hugging Face's, over fp32 logits of all tokens; or fused with the
/// head and computed in chunks (Liger's fused linear cross-entropy); or both over parts of the
/// rows, by PyTorch's operations (DeepSpeed's TiledFusedLogitsLoss). Preference training takes each
/// token's log-probability by the same operations, and holds on to no logits but the fp32 ones.
enum class LossKind : std::uint8_t {
  cross_entropy,
  fused_linear,
  tiled,  ///< head and cross-entropy over parts of the rows (ALST)
  log_probabilities,
  distillation,            ///< against a teacher's logits, all rows at once
  distillation_in_chunks,  ///< the same over some rows at a time
  anchored,                ///< of the labels, and a divergence from a reference's logits
  logits,                  ///< none: the logits themselves are asked for
};

/// How the entropy of a policy's tokens is taken from their logits, where a loss or a report asks.
enum class EntropyKind : std::uint8_t {
  none,
  compiled,  ///< one kernel over the logits, and one for their gradient
  eager,     ///< PyTorch's operations: probabilities in fp32, and their products with the logits
};

struct Lora {
  std::int64_t rank = 16;
  std::vector<std::string> targets;        ///< last components of module names: "q_proj"
  Quantization base = Quantization::none;  ///< of the linear layers inside the blocks (QLoRA)
  bool base_of_experts = false;            ///< and of the weights of experts
  /// peft's prepare_model_for_kbit_training: what has 16 bits and is not quantized becomes fp32;
  /// absent: what the trainer does.
  std::optional<bool> prepare_kbit;
  bool rank_stabilized = false;  ///< peft's use_rslora: another factor, and nothing else
  double dropout = 0;            ///< of what adapters take
  bool magnitudes = false;       ///< DoRA: a trained length for each row of an adapted weight
  /// peft's modules_to_save: of each module whose name ends so, a copy that trains.
  std::vector<std::string> saved;
  bool saved_in_fp32 = false;  ///< the copies: the trainer casts what it trains
  /// peft's target_parameters: weights of experts, by the ends of their names.
  std::vector<std::string> parameters;
  /// Parts of module names ("visual"): what is in them trains as it is, without adapters.
  std::vector<std::string> whole;
  /// OFT in place of LoRA: what a linear takes is turned in blocks of so many numbers; 0: LoRA.
  std::int64_t rotation_block = 0;
};

enum class WorkKind : std::uint8_t { train, inference, rlhf };

/// DeepSpeed-Inference: its kernels in place of the model's, with a workspace for `max_out_tokens`,
/// prompt included; the linear layers of blocks cut over `tensor_parallel` GPUs.
struct KernelInjection {
  std::int64_t max_out_tokens = 1024;
  std::int64_t tensor_parallel = 1;
};

/// What generation does after the prompt, which is the workload's batch and sequence.
struct Generation {
  std::int64_t new_tokens = 256;
  Quantization weights = Quantization::none;  ///< of the linear layers inside the blocks
  bool fp8_cache = false;  ///< keys and values in one byte, widened inside the attention kernel
  std::optional<KernelInjection> injection;
  /// A serving engine that runs all of it, with a paged cache; absent: the framework's own loop.
  std::optional<RolloutEngine> engine;
  /// Tokens at the begin of every prompt that are the same: the engine keeps them once.
  std::int64_t shared_prefix = 0;
};

/// Which parts before the text model do not train.
enum class FrozenParts : std::uint8_t {
  nothing,
  tower,
  tower_and_projector,
};

/// The images of a network that reads them.
struct ImageWork {
  std::int64_t per_sample = 1;
  std::int64_t tokens = 0;  ///< of the sequence that each takes; 0: as the network's processor does
  FrozenParts frozen = FrozenParts::nothing;
};

struct Workload {
  WorkKind kind = WorkKind::train;
  std::int64_t micro_batch = 1;  ///< of an engine 0: as many sequences as its cache has room for
  std::int64_t sequence_length = 2048;  ///< of the longest batch that the loader makes
  /// Absent: all samples are that long.
  std::optional<SampleLengths> lengths;
  /// Samples are joined to rows of the sequence length; else a batch is padded to its longest.
  bool packing = false;
  std::int64_t target_length = 0;  ///< decoder side of encoder-decoder models
  std::int64_t unscored = 0;       ///< of several models: tokens of a sequence that are its prompt
  std::int64_t gradient_accumulation = 1;
  ImageWork images;
  std::optional<Lora> lora;      ///< absent: full fine-tuning
  Generation generation;         ///< inference and rlhf
  std::optional<double> tokens;  ///< of the whole run, for what it takes and costs
};

/// How the plan stores the weights that it quantizes.
constexpr Quantization quantization_of(const Workload& w) {
  return w.lora ? w.lora->base : w.generation.weights;
}

struct TrainerDescription;

/// The one of a job that names none: a loop of one's own (trainers/registry.h).
const TrainerDescription& default_trainer();

struct Plan {
  Cluster cluster;
  /// Of a rollout engine and of other models beside the cluster's, and how many more such machines
  /// that is.
  std::int64_t engine_gpus = 0;
  double engine_nodes = 0;
  std::int64_t updates = 1;  ///< optimizer steps of an iteration of several models
  Framework framework;
  Parallel parallel;
  Workload workload;
  Precision precision;
  Optimizer optimizer;
  const TrainerDescription* trainer = &default_trainer();  ///< never null
  AttentionKind attention = AttentionKind::sdpa;
  SdpaKernel sdpa_kernel = SdpaKernel::cudnn_attention;
  StateKernels state_kernels = StateKernels::torch;
  LossKind loss = LossKind::cross_entropy;
  EntropyKind entropy = EntropyKind::none;
  KernelRequest kernels;  ///< fused ones in place of PyTorch's
  Checkpointing checkpointing = Checkpointing::none;
  CheckpointShare checkpoint_share;  ///< of policies with numbers
  ActivationOffloading activation_offloading = ActivationOffloading::none;
  std::int64_t mlp_tiles = 0;  ///< parts of the sequence that feed-forwards run over; 0: all of it
  std::optional<Compile> compile;  ///< absent: an eager step
  double gradient_clipping = 1.0;  ///< 0: off
  bool launch_blocking = false;    ///< CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel

  CheckpointChoice checkpoint_choice() const { return {checkpointing, checkpoint_share}; }
  void set_checkpointing(const CheckpointChoice& choice) {
    checkpointing = choice.how;
    checkpoint_share = choice.share;
  }
  /// Whether blocks are run again, some at least; if not, selective checkpointing runs only the
  /// attention itself again.
  bool recomputes_blocks() const;
  /// Whether blocks of a kind differ: some are run again, and the others keep all.
  bool keeps_some_blocks() const { return checkpointing == Checkpointing::blocks; }
  /// Whether the inputs of checkpointed blocks wait on the host.
  bool sends_inputs() const {
    return checkpoint_share.offload || activation_offloading != ActivationOffloading::none;
  }
  /// Whether the trainer puts the model's forward under torch.autocast.
  bool autocasts_forward() const;
  /// Whether attention is the package flash-attn's, which takes windows itself and has no masks.
  bool calls_flash_attn() const {
    return attention == AttentionKind::sdpa && sdpa_kernel == SdpaKernel::flash_attn;
  }
  /// Whether fp32 products may go to tensor cores, with their operands rounded to TF32.
  bool multiplies_in_tf32() const;
  /// Whether its passes are CUDA graphs, recorded once and replayed.
  bool records_graphs() const { return compile && compile->mode != CompileMode::usual; }
  /// Whether torch.compile takes the model in one piece.
  bool compiles_whole() const { return compile && compile->scope == CompileScope::model; }
  /// Whether each micro-batch of an accumulation reduces its gradients: as the job says, or as its
  /// trainer does.
  bool syncs_each_batch() const;
  /// Whether the frozen model is cast to fp32 but for what is quantized (Lora::prepare_kbit).
  bool prepares_kbit() const;
  /// The type of parameters that are not quantized and no adapters.
  DType kept_type() const;
  /// All that the job keeps busy, or waiting.
  std::int64_t paid_gpus() const { return checked_add(cluster.world(), engine_gpus); }
  /// The data-parallel degree: what the others leave of the world.
  std::int64_t data_ranks() const { return cluster.world() / parallel.model_ranks(); }
  /// Ranks with the same parameters, whose gradients are summed: those with parts of the same
  /// sequences too.
  std::int64_t replicas() const { return data_ranks() * parallel.sequence * parallel.context; }
  /// The ranks that one copy of the states is divided over: all replicas, or fewer under MiCS and
  /// hybrid sharding, which divide the replicas (parallel/sharding.h). Copies are kept alike by
  /// summing gradients among them.
  std::int64_t shard_ranks() const;
  std::int64_t copies() const { return replicas() / shard_ranks(); }
  /// Of all GPUs together, in one micro-batch.
  std::int64_t samples_at_once() const { return checked_mul(data_ranks(), workload.micro_batch); }
};

}  // namespace shardplan
