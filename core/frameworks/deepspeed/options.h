// A resolved DeepSpeed configuration: every key that changes memory, traffic or time, with its
// effective value (given, default of the version, or what HF Trainer's "auto" becomes).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "formats/dtype.h"
#include "plan/offload_device.h"

namespace shardplan {

struct DeepSpeedVersion {
  int major = 0, minor = 19, patch = 6;
  friend auto operator<=>(const DeepSpeedVersion&, const DeepSpeedVersion&) = default;
};

struct OffloadOptimizer {
  OffloadDevice device = OffloadDevice::none;
  bool pin_memory = true;
  std::int64_t buffer_count = 4;
  bool pipeline_read = false;
  bool pipeline_write = false;
  double ratio = 1.0;
  bool fast_init = false;
  bool super_offload = false;
  std::string nvme_path;
};

struct OffloadParam {
  OffloadDevice device = OffloadDevice::none;
  bool pin_memory = true;
  std::int64_t buffer_count = 5;
  std::int64_t buffer_size = 100'000'000;   ///< elements
  std::int64_t max_in_cpu = 1'000'000'000;  ///< elements
  std::string nvme_path;
};

/// Of a job that has neither a stage nor a ds_config.
inline constexpr std::int64_t kStageOfShortForm = 3;

/// zero_optimization. Sizes are elements, as in the file.
struct ZeroOptions {
  int stage = 0;
  bool contiguous_gradients = true;
  bool reduce_scatter = true;
  std::int64_t reduce_bucket_size = 500'000'000;
  bool use_multi_rank_bucket_allreduce = true;
  std::int64_t allgather_bucket_size = 500'000'000;
  bool overlap_comm = false;  ///< null in the file: true exactly at stage 3
  bool round_robin_gradients = false;
  std::int64_t sub_group_size = 1'000'000'000;
  std::int64_t prefetch_bucket_size = 50'000'000;
  std::int64_t param_persistence_threshold = 100'000;
  std::int64_t model_persistence_threshold = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_live_parameters = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;
  bool allgather_sequential = false;
  bool use_all_reduce_for_fetch_params = false;
  bool memory_efficient_linear = true;
  std::int64_t hpz_partition_size = 1;
  bool quantized_weights = false;
  bool quantized_gradients = false;
  bool quantized_nontrainable_weights = false;
  bool loco = false;  ///< zeropp_loco_param: quantized gradients with error feedback
  std::int64_t mics_shard_size = -1;
  bool mics_hierarchical_gather = false;
  OffloadOptimizer offload_optimizer;
  OffloadParam offload_param;
  std::int64_t module_granularity_threshold = 0;
  bool gather_16bit_weights_on_model_save = false;
  bool zenflow = false;  ///< the block is there

  /// Stage 3 in shard groups smaller than the world, which MiCS keeps copies in.
  bool mics() const { return stage == 3 && mics_shard_size > 0; }
  /// Stage 3 with a second copy of the parameters that backward gathers from (hpZ).
  bool has_secondary() const { return stage == 3 && hpz_partition_size > 1 && !mics(); }
};

/// activation_checkpointing: acts only on models that call deepspeed.checkpointing.
struct DeepSpeedCheckpointing {
  bool partition_activations = false;
  bool cpu_checkpointing = false;
  bool contiguous_memory_optimization = false;
  std::optional<std::int64_t> number_checkpoints;
  bool synchronize_checkpoint_boundary = false;
  /// The job's: blocks are checkpointed by deepspeed.checkpointing.checkpoint, whose configure()
  /// is given the ds_config and the tensor-parallel group.
  bool called = false;
};

/// Layers of deepspeed.moe.layer.MoE in place of a model's own sparse ones.
struct DeepSpeedMoe {
  double capacity_factor = 1.0;  ///< rows that an expert takes of each rank, over an even share
  std::int64_t min_capacity = 4;
  bool drop_tokens = true;  ///< false: as many rows as the fullest expert is sent
};

/// fp16: a scale of 0 is dynamic.
struct LossScaling {
  double static_scale = 0;
  std::int64_t initial_scale_power = 16;
  std::int64_t window = 1000;
  std::int64_t hysteresis = 2;
  std::int64_t min_scale = 1;
};

/// aio: the NVMe swapper's requests.
struct DeepSpeedAio {
  std::int64_t block_size = 1'048'576;  ///< bytes
  std::int64_t queue_depth = 8;
  std::int64_t intra_op_parallelism = 1;
  bool single_submit = false;
  bool overlap_events = true;
  bool use_gds = false;
};

/// pipeline: read by PipelineModule and its engine.
struct DeepSpeedPipeline {
  std::optional<std::int64_t> stages;  ///< absent: "auto"
  std::string partition = "best";
  std::int64_t activation_checkpoint_interval = 0;  ///< layers; 0: none
  bool pipe_partitioned = true;
  bool grad_partitioned = true;
};

struct DeepSpeedOptions {
  DeepSpeedVersion version;
  ZeroOptions zero;
  /// The engine's model dtype: fp16.enabled, bf16.enabled, else fp32. Absent: no block in the
  /// file, take the job's precision.
  std::optional<DType> engine_dtype;
  bool torch_autocast = false;
  std::optional<DType> torch_autocast_dtype;
  /// What the program casts the model to after zero.Init has divided it (model.to). Stage 3 then
  /// keeps offloaded parameters in that type, and computes in it (stage3.py, self.dtype).
  std::optional<DType> model_dtype;
  std::optional<DType> grad_accum_dtype;  ///< data_types.grad_accum_dtype
  /// Of gradients; under sequence parallelism what the engine puts in its place.
  std::optional<DType> communication_dtype;
  bool check_grad_overflow = true;      ///< bf16.check_grad_overflow; fp16 always checks
  bool master_weights_16bit = false;    ///< fp16_/bf16_master_weights_and_grads
  bool optimizer_states_16bit = false;  ///< bf16_optimizer_states
  bool immediate_grad_update = false;   ///< BF16_Optimizer only
  LossScaling loss_scaling;
  // The batch triangle, closed: train = micro * accumulation * data-parallel world.
  std::optional<std::int64_t> train_batch_size;
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> gradient_accumulation;
  std::optional<double> gradient_clipping;
  std::optional<std::string> optimizer_type;  ///< optimizer.type as written: "AdamW", "Lion"
  bool torch_adam = false;                    ///< optimizer.params.torch_adam
  bool optimizer_from_program = false;        ///< a ds_config without an optimizer block
  bool short_form = false;                    ///< no ds_config: zero_stage, offload_optimizer
  bool amsgrad = false;                       ///< of torch_adam
  double momentum = 0;                        ///< optimizer.params.momentum where it is given
  bool fp32_optimizer_states = true;          ///< optimizer.params, CPU Adam only
  DeepSpeedCheckpointing activation_checkpointing;
  std::optional<DeepSpeedMoe> moe;
  std::int64_t tensor_parallel = 1;  ///< tensor_parallel.autotp_size
  std::int64_t sequence_parallel = 1;
  std::int64_t expert_parallel = 1;  ///< expert_parallel.autoep_size
  DeepSpeedAio aio;
  std::optional<DeepSpeedPipeline> pipeline;  ///< the block, if it is there
  bool deepcompile = false;
  bool sparse_gradients = false;

  /// It hands the engine an optimizer. Exported, the short form names one only where the engine has
  /// to make it.
  bool program_makes_optimizer() const {
    return optimizer_from_program &&
           (!short_form ||
            (zero.stage > 0 && zero.offload_optimizer.device == OffloadDevice::none));
  }
};

}  // namespace shardplan
