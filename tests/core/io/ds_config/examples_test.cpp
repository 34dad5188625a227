// Every file under configs/deepspeed loads, without a word where it can, and means what it says.
#include <filesystem>
#include <set>

#include "ds_config_testing.h"

namespace shardplan {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kFolder = std::string(SHARDPLAN_SOURCE_DIR) + "/configs/deepspeed/";

DsConfigResult loaded(const std::string& name, const DsConfigContext& context) {
  return load_ds_config(read_json_file(kFolder + name + ".json"), name + ".json", context);
}

DsConfigContext trainer_on(std::int64_t ranks) {
  DsConfigContext context = on_ranks(ranks);
  context.auto_resolver = AutoResolver::hf_trainer;
  context.hidden_size = 4096;
  context.trainer.per_device_train_batch_size = 4;
  context.trainer.gradient_accumulation_steps = 8;
  context.trainer.learning_rate = 2e-5;
  context.trainer.warmup_steps = 100;
  context.trainer.bf16 = true;
  return context;
}

TEST(DsExamples, ZeroOne) {
  const auto result = loaded("zero1", on_ranks(4));
  EXPECT_EQ(result.options.zero.stage, 1);
  EXPECT_EQ(result.options.engine_dtype, DType::bf16);
  EXPECT_EQ(result.options.train_batch_size, 16);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, ZeroTwoWithSmallBuckets) {
  const auto result = loaded("zero2_buckets", on_ranks(8));
  EXPECT_EQ(result.options.zero.stage, 2);
  EXPECT_EQ(result.options.zero.reduce_bucket_size, 200'000'000);
  EXPECT_EQ(result.options.zero.allgather_bucket_size, 200'000'000);
  EXPECT_TRUE(result.options.zero.overlap_comm);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, ZeroTwoOffloadWithAutoEverywhere) {
  const auto result = loaded("zero2_offload_auto", trainer_on(8));
  EXPECT_EQ(result.options.zero.offload_optimizer.device, OffloadDevice::cpu);
  EXPECT_TRUE(result.options.zero.offload_optimizer.pin_memory);
  EXPECT_EQ(result.options.zero.reduce_bucket_size, 16'777'216);
  EXPECT_EQ(result.options.train_batch_size, 256);
  EXPECT_EQ(result.options.engine_dtype, DType::bf16);
  EXPECT_EQ(result.options.gradient_clipping, 1.0);
  EXPECT_EQ(result.options.optimizer_type, "AdamW");
  EXPECT_EQ(result.autos.size(), 14);
  EXPECT_THAT(result.diagnostics, IsEmpty());
  // Without a trainer DeepSpeed stumbles over the first top-level "auto".
  EXPECT_THROW(loaded("zero2_offload_auto", on_ranks(8)), InputError);
}

TEST(DsExamples, ZeroThreeWithAutoSizes) {
  const auto result = loaded("zero3_auto", trainer_on(8));
  EXPECT_EQ(result.options.zero.stage, 3);
  EXPECT_EQ(result.options.zero.prefetch_bucket_size, 15'099'494);
  EXPECT_EQ(result.options.zero.param_persistence_threshold, 40'960);
  EXPECT_EQ(result.options.zero.max_live_parameters, 1'000'000'000);
  EXPECT_EQ(result.options.zero.sub_group_size, 200'000'000);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, ZeroThreeOffloadedToTheHost) {
  const auto result = loaded("zero3_offload_cpu", on_ranks(8));
  EXPECT_EQ(result.options.zero.offload_optimizer.device, OffloadDevice::cpu);
  EXPECT_EQ(result.options.zero.offload_param.device, OffloadDevice::cpu);
  EXPECT_EQ(result.options.train_batch_size, 32);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, ZeroInfinity) {
  const auto result = loaded("zero_infinity_nvme", on_ranks(4));
  EXPECT_EQ(result.options.zero.offload_optimizer.device, OffloadDevice::nvme);
  EXPECT_EQ(result.options.zero.offload_optimizer.buffer_count, 4);
  EXPECT_EQ(result.options.zero.offload_param.device, OffloadDevice::nvme);
  EXPECT_EQ(result.options.zero.offload_param.buffer_count, 5);
  EXPECT_EQ(result.options.zero.offload_param.buffer_size, 100'000'000);
  EXPECT_EQ(result.options.aio.block_size, 1'048'576);
  EXPECT_EQ(result.options.aio.queue_depth, 8);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, Fp16WithDynamicScale) {
  const auto result = loaded("fp16_dynamic_scale", on_ranks(2));
  EXPECT_EQ(result.options.engine_dtype, DType::f16);
  EXPECT_EQ(result.options.loss_scaling.static_scale, 0);
  EXPECT_EQ(result.options.loss_scaling.initial_scale_power, 16);
  EXPECT_EQ(result.options.loss_scaling.window, 1000);
  EXPECT_EQ(result.options.loss_scaling.hysteresis, 2);
  EXPECT_EQ(result.options.loss_scaling.min_scale, 1);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, Bf16) {
  const auto result = loaded("bf16", on_ranks(2));
  EXPECT_EQ(result.options.engine_dtype, DType::bf16);
  EXPECT_EQ(result.options.zero.stage, 0);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, FourSchedulers) {
  for (const char* file : {"scheduler_lr_range_test", "scheduler_one_cycle", "scheduler_warmup",
                           "scheduler_warmup_decay"})
    EXPECT_THAT(loaded(file, on_ranks(8)).diagnostics, IsEmpty()) << file;
}

TEST(DsExamples, ActivationCheckpointing) {
  const auto result = loaded("activation_checkpointing", on_ranks(8));
  EXPECT_TRUE(result.options.activation_checkpointing.partition_activations);
  EXPECT_TRUE(result.options.activation_checkpointing.cpu_checkpointing);
  EXPECT_TRUE(result.options.activation_checkpointing.contiguous_memory_optimization);
  EXPECT_EQ(result.options.activation_checkpointing.number_checkpoints, 32);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, PipelineWithZeroOne) {
  DsConfigContext context = on_ranks(8);
  context.pipeline_parallel = 4;
  const auto result = loaded("pipeline_zero1", context);
  ASSERT_TRUE(result.options.pipeline);
  EXPECT_EQ(result.options.pipeline->stages, 4);
  EXPECT_EQ(result.options.pipeline->partition, "parameters");
  EXPECT_EQ(result.options.pipeline->activation_checkpoint_interval, 1);
  EXPECT_EQ(result.options.gradient_accumulation, 8);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, TensorParallel) {
  const auto result = loaded("tensor_parallel4", on_ranks(2));
  EXPECT_EQ(result.options.tensor_parallel, 4);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, ExpertParallelWithZeroTwo) {
  const auto result = loaded("moe_expert_parallel4_zero2", on_ranks(8));
  EXPECT_EQ(result.options.expert_parallel, 4);
  EXPECT_EQ(result.options.zero.stage, 2);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, TheTriangleOf2048ClosesOnEightRanksOnly) {
  EXPECT_EQ(loaded("batch_triangle_2048", on_ranks(8)).options.train_batch_size, 2048);
  EXPECT_THROW(loaded("batch_triangle_2048", on_ranks(4)), InputError);
}

TEST(DsExamples, TheLoraJob) {
  const auto result = loaded("lora_zero2_offload", on_ranks(8));
  EXPECT_EQ(result.options.micro_batch, 4);
  EXPECT_EQ(result.options.gradient_accumulation, 8);
  EXPECT_EQ(result.options.train_batch_size, 256);
  EXPECT_EQ(result.options.engine_dtype, DType::bf16);
  EXPECT_EQ(result.options.zero.offload_optimizer.device, OffloadDevice::cpu);
  EXPECT_THAT(result.diagnostics, IsEmpty());
}

TEST(DsExamples, ZeroPlusPlusOnFourNodes) {
  const auto result = loaded("zeropp", on_ranks(32));
  EXPECT_EQ(result.options.zero.hpz_partition_size, 8);
  EXPECT_TRUE(result.options.zero.quantized_weights);
  EXPECT_TRUE(result.options.zero.quantized_gradients);
  EXPECT_EQ(result.options.engine_dtype, DType::f16);
}

TEST(DsExamples, NoFileIsForgottenHere) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    files.insert(entry.path().stem().string());
  EXPECT_EQ(files, (std::set<std::string>{
                       "activation_checkpointing", "batch_triangle_2048", "bf16",
                       "fp16_dynamic_scale", "lora_zero2_offload", "moe_expert_parallel4_zero2",
                       "pipeline_zero1", "scheduler_lr_range_test", "scheduler_one_cycle",
                       "scheduler_warmup", "scheduler_warmup_decay", "tensor_parallel4", "zero1",
                       "zero2_buckets", "zero2_offload_auto", "zero3_auto", "zero3_offload_cpu",
                       "zero_infinity_nvme", "zeropp"}));
}

}  // namespace
}  // namespace shardplan
