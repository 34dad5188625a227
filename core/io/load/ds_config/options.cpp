#include "load/ds_config/options.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "formats/dtype.h"

namespace shardplan {
namespace {

OffloadDevice device_named(const std::optional<std::string>& name) {
  if (name == "cpu") return OffloadDevice::cpu;
  if (name == "nvme") return OffloadDevice::nvme;
  return OffloadDevice::none;
}

std::optional<DType> dtype_at(const DsValues& values, std::string_view path) {
  const auto name = values.maybe_text(path);
  return name ? parse_dtype(*name) : std::nullopt;
}

OffloadOptimizer offload_optimizer(const DsValues& v) {
  const std::string block = "zero_optimization.offload_optimizer.";
  return {.device = device_named(v.maybe_text(block + "device")),
          .pin_memory = v.flag(block + "pin_memory"),
          .buffer_count = v.integer(block + "buffer_count"),
          .pipeline_read = v.flag(block + "pipeline_read"),
          .pipeline_write = v.flag(block + "pipeline_write"),
          .ratio = v.number(block + "ratio"),
          .fast_init = v.flag(block + "fast_init"),
          .super_offload = v.flag(block + "super_offload"),
          .nvme_path = v.maybe_text(block + "nvme_path").value_or("")};
}

OffloadParam offload_param(const DsValues& v) {
  const std::string block = "zero_optimization.offload_param.";
  return {.device = device_named(v.maybe_text(block + "device")),
          .pin_memory = v.flag(block + "pin_memory"),
          .buffer_count = v.integer(block + "buffer_count"),
          .buffer_size = v.integer(block + "buffer_size"),
          .max_in_cpu = v.integer(block + "max_in_cpu"),
          .nvme_path = v.maybe_text(block + "nvme_path").value_or("")};
}

ZeroOptions zero_options(const DsValues& v) {
  const std::string z = "zero_optimization.";
  const int stage = v.stage();
  const Json* overlap = v.given(z + "overlap_comm");
  return {
      .stage = stage,
      .contiguous_gradients = v.flag(z + "contiguous_gradients"),
      .reduce_scatter = v.flag(z + "reduce_scatter"),
      .reduce_bucket_size = v.integer(z + "reduce_bucket_size"),
      .use_multi_rank_bucket_allreduce = v.flag(z + "use_multi_rank_bucket_allreduce"),
      .allgather_bucket_size = v.integer(z + "allgather_bucket_size"),
      .overlap_comm = overlap == nullptr ? stage == 3 : v.flag(z + "overlap_comm"),
      .round_robin_gradients = v.flag(z + "round_robin_gradients"),
      .sub_group_size = v.integer(z + "sub_group_size"),
      .prefetch_bucket_size = v.integer(z + "stage3_prefetch_bucket_size"),
      .param_persistence_threshold = v.integer(z + "stage3_param_persistence_threshold"),
      .model_persistence_threshold = v.integer(z + "stage3_model_persistence_threshold"),
      .max_live_parameters = v.integer(z + "stage3_max_live_parameters"),
      .max_reuse_distance = v.integer(z + "stage3_max_reuse_distance"),
      .allgather_sequential = v.flag(z + "stage3_allgather_sequential"),
      .use_all_reduce_for_fetch_params = v.flag(z + "stage3_use_all_reduce_for_fetch_params"),
      .memory_efficient_linear = v.flag(z + "memory_efficient_linear"),
      .hpz_partition_size = v.integer(z + "zero_hpz_partition_size"),
      .quantized_weights = v.flag(z + "zero_quantized_weights"),
      .quantized_gradients = v.flag(z + "zero_quantized_gradients"),
      .quantized_nontrainable_weights = v.flag(z + "zero_quantized_nontrainable_weights"),
      .loco = v.given(z + "zeropp_loco_param") != nullptr,
      .mics_shard_size = v.integer(z + "mics_shard_size"),
      .mics_hierarchical_gather = v.flag(z + "mics_hierarchical_params_gather"),
      .offload_optimizer = offload_optimizer(v),
      .offload_param = offload_param(v),
      .module_granularity_threshold = v.integer(z + "stage3_module_granularity_threshold"),
      .gather_16bit_weights_on_model_save = v.flag(z + "stage3_gather_16bit_weights_on_model_save"),
      .zenflow = v.given(z + "zenflow") != nullptr,
  };
}

std::optional<DType> engine_dtype(const DsValues& v) {
  if (v.flag("fp16.enabled")) return DType::f16;
  if (v.flag("bf16.enabled")) return DType::bf16;
  const bool said = v.given("fp16") != nullptr || v.given("bf16") != nullptr ||
                    v.flag("torch_autocast.enabled") || v.flag("amp.enabled");
  return said ? std::optional(DType::f32) : std::nullopt;
}

/// Under sequence parallelism the engine puts seq_parallel_communication_data_type in place of
/// communication_data_type (runtime/engine.py); before 0.16.5 its key was spelled differently.
std::optional<DType> communication_dtype(const DsValues& v) {
  if (v.maybe_integer("sequence_parallel_size").value_or(1) <= 1)
    return dtype_at(v, "communication_data_type");
  const bool renamed = v.version() >= DeepSpeedVersion{0, 16, 5};
  return dtype_at(v,
                  renamed ? "seq_parallel_communication_data_type" : "seq_parallel_comm_data_type");
}

DeepSpeedCheckpointing checkpointing(const DsValues& v) {
  const std::string block = "activation_checkpointing.";
  return {.partition_activations = v.flag(block + "partition_activations"),
          .cpu_checkpointing = v.flag(block + "cpu_checkpointing"),
          .contiguous_memory_optimization = v.flag(block + "contiguous_memory_optimization"),
          .number_checkpoints = v.maybe_integer(block + "number_checkpoints"),
          .synchronize_checkpoint_boundary = v.flag(block + "synchronize_checkpoint_boundary")};
}

LossScaling loss_scaling(const DsValues& v) {
  return {.static_scale = v.number("fp16.loss_scale"),
          .initial_scale_power = v.integer("fp16.initial_scale_power"),
          .window = v.integer("fp16.loss_scale_window"),
          .hysteresis = v.integer("fp16.hysteresis"),
          .min_scale = v.integer("fp16.min_loss_scale")};
}

DeepSpeedAio aio(const DsValues& v) {
  return {.block_size = v.integer("aio.block_size"),
          .queue_depth = v.integer("aio.queue_depth"),
          .intra_op_parallelism = v.integer("aio.intra_op_parallelism"),
          .single_submit = v.flag("aio.single_submit"),
          .overlap_events = v.flag("aio.overlap_events"),
          .use_gds = v.flag("aio.use_gds")};
}

std::optional<DeepSpeedPipeline> pipeline(const DsValues& v) {
  if (v.given("pipeline") == nullptr) return std::nullopt;
  return DeepSpeedPipeline{
      .stages = v.maybe_integer("pipeline.stages"),
      .partition = v.text("pipeline.partition"),
      .activation_checkpoint_interval = v.integer("pipeline.activation_checkpoint_interval"),
      .pipe_partitioned = v.flag("pipeline.pipe_partitioned"),
      .grad_partitioned = v.flag("pipeline.grad_partitioned")};
}

}  // namespace

DeepSpeedOptions make_deepspeed_options(const DsValues& v, const BatchTriangle& batch) {
  DeepSpeedOptions o;
  o.version = v.version();
  o.zero = zero_options(v);
  o.engine_dtype = engine_dtype(v);
  o.torch_autocast = v.flag("torch_autocast.enabled");
  o.torch_autocast_dtype = dtype_at(v, "torch_autocast.dtype");
  o.grad_accum_dtype = dtype_at(v, "data_types.grad_accum_dtype");
  o.communication_dtype = communication_dtype(v);
  o.check_grad_overflow = v.flag("bf16.check_grad_overflow");
  o.immediate_grad_update = v.flag("bf16.immediate_grad_update");
  o.master_weights_16bit =
      v.flag("fp16.fp16_master_weights_and_grads") || v.flag("bf16.bf16_master_weights_and_grads");
  o.optimizer_states_16bit = v.flag("bf16.bf16_optimizer_states");
  o.loss_scaling = loss_scaling(v);
  o.train_batch_size = batch.train_batch;
  o.micro_batch = batch.micro_batch;
  o.gradient_accumulation = batch.accumulation;
  o.gradient_clipping = v.number("gradient_clipping");
  o.optimizer_type = v.maybe_text("optimizer.type");
  o.torch_adam = v.flag("optimizer.params.torch_adam");
  o.fp32_optimizer_states = v.flag("optimizer.params.fp32_optimizer_states");
  o.activation_checkpointing = checkpointing(v);
  o.aio = aio(v);
  o.pipeline = pipeline(v);
  o.tensor_parallel = std::max<std::int64_t>(1, v.integer("tensor_parallel.autotp_size"));
  o.sequence_parallel = v.maybe_integer("sequence_parallel_size").value_or(1);
  if (v.flag("expert_parallel.enabled"))
    o.expert_parallel = v.integer("expert_parallel.autoep_size");
  o.deepcompile = v.flag("compile.deepcompile");
  o.sparse_gradients = v.flag("sparse_gradients");
  return o;
}

}  // namespace shardplan
