// Keys of a ds_config.json that are a member each.
#include "frameworks/deepspeed/config_table.h"

#include "options/choices.h"
#include "options/member.h"

namespace shardplan {
namespace {

constexpr std::array kConfigOptions{
    option<&DeepSpeedOptions::zero, &ZeroOptions::stage>({.key = "zero_optimization.stage"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::contiguous_gradients>(
        {.key = "zero_optimization.contiguous_gradients"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::reduce_scatter>(
        {.key = "zero_optimization.reduce_scatter"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::reduce_bucket_size>(
        {.key = "zero_optimization.reduce_bucket_size"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::use_multi_rank_bucket_allreduce>(
        {.key = "zero_optimization.use_multi_rank_bucket_allreduce"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::allgather_bucket_size>(
        {.key = "zero_optimization.allgather_bucket_size"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::round_robin_gradients>(
        {.key = "zero_optimization.round_robin_gradients"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::sub_group_size>(
        {.key = "zero_optimization.sub_group_size"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::prefetch_bucket_size>(
        {.key = "zero_optimization.stage3_prefetch_bucket_size"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::param_persistence_threshold>(
        {.key = "zero_optimization.stage3_param_persistence_threshold"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::model_persistence_threshold>(
        {.key = "zero_optimization.stage3_model_persistence_threshold"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::max_live_parameters>(
        {.key = "zero_optimization.stage3_max_live_parameters"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::max_reuse_distance>(
        {.key = "zero_optimization.stage3_max_reuse_distance"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::allgather_sequential>(
        {.key = "zero_optimization.stage3_allgather_sequential"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::use_all_reduce_for_fetch_params>(
        {.key = "zero_optimization.stage3_use_all_reduce_for_fetch_params"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::memory_efficient_linear>(
        {.key = "zero_optimization.memory_efficient_linear"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::hpz_partition_size>(
        {.key = "zero_optimization.zero_hpz_partition_size"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::quantized_weights>(
        {.key = "zero_optimization.zero_quantized_weights"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::quantized_gradients>(
        {.key = "zero_optimization.zero_quantized_gradients"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::quantized_nontrainable_weights>(
        {.key = "zero_optimization.zero_quantized_nontrainable_weights"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::mics_shard_size>(
        {.key = "zero_optimization.mics_shard_size"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::mics_hierarchical_gather>(
        {.key = "zero_optimization.mics_hierarchical_params_gather"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::module_granularity_threshold>(
        {.key = "zero_optimization.stage3_module_granularity_threshold"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::gather_16bit_weights_on_model_save>(
        {.key = "zero_optimization.stage3_gather_16bit_weights_on_model_save"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_optimizer, &OffloadOptimizer::device>(
        {.key = "zero_optimization.offload_optimizer.device", .choices = kOffloadDevices}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_optimizer, &OffloadOptimizer::pin_memory>(
        {.key = "zero_optimization.offload_optimizer.pin_memory"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_optimizer,
           &OffloadOptimizer::buffer_count>(
        {.key = "zero_optimization.offload_optimizer.buffer_count"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_optimizer,
           &OffloadOptimizer::pipeline_read>(
        {.key = "zero_optimization.offload_optimizer.pipeline_read"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_optimizer,
           &OffloadOptimizer::pipeline_write>(
        {.key = "zero_optimization.offload_optimizer.pipeline_write"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_optimizer, &OffloadOptimizer::ratio>(
        {.key = "zero_optimization.offload_optimizer.ratio"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_optimizer, &OffloadOptimizer::fast_init>(
        {.key = "zero_optimization.offload_optimizer.fast_init"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_optimizer,
           &OffloadOptimizer::super_offload>(
        {.key = "zero_optimization.offload_optimizer.super_offload"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_optimizer, &OffloadOptimizer::nvme_path>(
        {.key = "zero_optimization.offload_optimizer.nvme_path"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_param, &OffloadParam::device>(
        {.key = "zero_optimization.offload_param.device", .choices = kOffloadDevices}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_param, &OffloadParam::pin_memory>(
        {.key = "zero_optimization.offload_param.pin_memory"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_param, &OffloadParam::buffer_count>(
        {.key = "zero_optimization.offload_param.buffer_count"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_param, &OffloadParam::buffer_size>(
        {.key = "zero_optimization.offload_param.buffer_size"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_param, &OffloadParam::max_in_cpu>(
        {.key = "zero_optimization.offload_param.max_in_cpu"}),
    option<&DeepSpeedOptions::zero, &ZeroOptions::offload_param, &OffloadParam::nvme_path>(
        {.key = "zero_optimization.offload_param.nvme_path"}),
    option<&DeepSpeedOptions::activation_checkpointing,
           &DeepSpeedCheckpointing::partition_activations>(
        {.key = "activation_checkpointing.partition_activations"}),
    option<&DeepSpeedOptions::activation_checkpointing, &DeepSpeedCheckpointing::cpu_checkpointing>(
        {.key = "activation_checkpointing.cpu_checkpointing"}),
    option<&DeepSpeedOptions::activation_checkpointing,
           &DeepSpeedCheckpointing::contiguous_memory_optimization>(
        {.key = "activation_checkpointing.contiguous_memory_optimization"}),
    option<&DeepSpeedOptions::activation_checkpointing,
           &DeepSpeedCheckpointing::number_checkpoints>(
        {.key = "activation_checkpointing.number_checkpoints"}),
    option<&DeepSpeedOptions::activation_checkpointing,
           &DeepSpeedCheckpointing::synchronize_checkpoint_boundary>(
        {.key = "activation_checkpointing.synchronize_checkpoint_boundary"}),
    option<&DeepSpeedOptions::loss_scaling, &LossScaling::static_scale>({.key = "fp16.loss_scale"}),
    option<&DeepSpeedOptions::loss_scaling, &LossScaling::initial_scale_power>(
        {.key = "fp16.initial_scale_power"}),
    option<&DeepSpeedOptions::loss_scaling, &LossScaling::window>(
        {.key = "fp16.loss_scale_window"}),
    option<&DeepSpeedOptions::loss_scaling, &LossScaling::hysteresis>({.key = "fp16.hysteresis"}),
    option<&DeepSpeedOptions::loss_scaling, &LossScaling::min_scale>(
        {.key = "fp16.min_loss_scale"}),
    option<&DeepSpeedOptions::aio, &DeepSpeedAio::block_size>({.key = "aio.block_size"}),
    option<&DeepSpeedOptions::aio, &DeepSpeedAio::queue_depth>({.key = "aio.queue_depth"}),
    option<&DeepSpeedOptions::aio, &DeepSpeedAio::intra_op_parallelism>(
        {.key = "aio.intra_op_parallelism"}),
    option<&DeepSpeedOptions::aio, &DeepSpeedAio::single_submit>({.key = "aio.single_submit"}),
    option<&DeepSpeedOptions::aio, &DeepSpeedAio::overlap_events>({.key = "aio.overlap_events"}),
    option<&DeepSpeedOptions::aio, &DeepSpeedAio::use_gds>({.key = "aio.use_gds"}),
    option<&DeepSpeedOptions::torch_autocast>({.key = "torch_autocast.enabled"}),
    option<&DeepSpeedOptions::check_grad_overflow>({.key = "bf16.check_grad_overflow"}),
    option<&DeepSpeedOptions::immediate_grad_update>({.key = "bf16.immediate_grad_update"}),
    option<&DeepSpeedOptions::optimizer_states_16bit>({.key = "bf16.bf16_optimizer_states"}),
    option<&DeepSpeedOptions::torch_adam>({.key = "optimizer.params.torch_adam"}),
    option<&DeepSpeedOptions::fp32_optimizer_states>(
        {.key = "optimizer.params.fp32_optimizer_states"}),
    option<&DeepSpeedOptions::optimizer_type>({.key = "optimizer.type"}),
    option<&DeepSpeedOptions::deepcompile>({.key = "compile.deepcompile"}),
    option<&DeepSpeedOptions::sparse_gradients>({.key = "sparse_gradients"}),
};

}  // namespace

constinit const OptionTable<DeepSpeedOptions> kDsConfigTable{"", "", kConfigOptions};

}  // namespace shardplan
