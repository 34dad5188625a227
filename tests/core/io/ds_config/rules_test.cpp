#include "ds_config_testing.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DsRule : public ::testing::TestWithParam<RuleCase> {};

TEST_P(DsRule, IsReportedOnceWhenBrokenAndNotWhenKept) {
  EXPECT_THAT(errors_of(GetParam().broken), ElementsAre(HasSubstr(GetParam().finding)));
  EXPECT_THAT(errors_of(GetParam().kept), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Precision, DsRule,
    ::testing::Values(
        RuleCase{"BothModes", R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})",
                 "bf16.enabled: fp16 and bf16 are both enabled",
                 R"({"fp16": {"enabled": false}, "bf16": {"enabled": true}})"},
        RuleCase{"AmpWithZero", R"({"amp": {"enabled": true}, "zero_optimization": {"stage": 1}})",
                 "amp does not work with ZeRO stage 1", R"({"amp": {"enabled": true}})"},
        RuleCase{"AmpWithFp16", R"({"amp": {"enabled": true}, "fp16": {"enabled": true}})",
                 "amp does not work with fp16 or bf16", R"({"amp": {"enabled": true}})"},
        RuleCase{"LossScaleWindow", R"({"fp16": {"enabled": true, "loss_scale_window": 0}})",
                 "fp16.loss_scale_window: found 0 with dynamic loss scaling",
                 R"({"fp16": {"enabled": true, "loss_scale": 128, "loss_scale_window": 0}})"},
        RuleCase{"MinLossScale", R"({"fp16": {"enabled": true, "min_loss_scale": 0}})",
                 "fp16.min_loss_scale: found 0",
                 R"({"fp16": {"enabled": false, "min_loss_scale": 0}})"},
        RuleCase{"MastersNeedZero",
                 R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true,
                    "bf16_optimizer_states": true}})",
                 "works only with ZeRO",
                 R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true,
                    "bf16_optimizer_states": true}, "zero_optimization": {"stage": 1}})"},
        RuleCase{"StatesNeedMasters",
                 R"({"bf16": {"enabled": true, "bf16_optimizer_states": true},
                    "zero_optimization": {"stage": 1}})",
                 "16-bit optimizer states need 16-bit master weights",
                 R"({"bf16": {"enabled": true, "bf16_optimizer_states": true,
                    "bf16_master_weights_and_grads": true}, "zero_optimization": {"stage": 1}})"},
        RuleCase{"MastersNeedOffload",
                 R"({"fp16": {"enabled": true, "fp16_master_weights_and_grads": true},
                    "zero_optimization": {"stage": 2}})",
                 "need the optimizer offloaded to CPU Adam",
                 R"({"fp16": {"enabled": true, "fp16_master_weights_and_grads": true},
                    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})"},
        RuleCase{"MastersNeedCpuAdam",
                 R"({"fp16": {"enabled": true, "fp16_master_weights_and_grads": true},
                    "optimizer": {"type": "Lion"},
                    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})",
                 "need CPU Adam, not Lion",
                 R"({"fp16": {"enabled": true, "fp16_master_weights_and_grads": true},
                    "optimizer": {"type": "Adam"},
                    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})"},
        RuleCase{"MastersExclude",
                 R"({"fp16": {"fp16_master_weights_and_grads": true},
                    "bf16": {"enabled": true, "bf16_master_weights_and_grads": true},
                    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})",
                 "excludes 'fp16.fp16_master_weights_and_grads'",
                 R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true},
                    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})"},
        RuleCase{"ParameterType",
                 R"({"bf16": {"enabled": true}, "data_types": {"param_dtype": "fp16"}})",
                 "data_types.param_dtype: fp16 contradicts the engine type bf16",
                 R"({"bf16": {"enabled": true}, "data_types": {"param_dtype": "bfloat16"}})"},
        RuleCase{"AccumulationTypeWithoutZero",
                 R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}})",
                 "without ZeRO gradients accumulate in the engine type bf16",
                 R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"},
                    "zero_optimization": {"stage": 1}})"},
        RuleCase{"QuantizedWeightsUnderAutocast",
                 R"({"torch_autocast": {"enabled": true, "dtype": "bf16"},
                    "zero_optimization": {"stage": 3, "zero_quantized_weights": true}})",
                 "do not work with torch_autocast",
                 R"({"bf16": {"enabled": true},
                    "zero_optimization": {"stage": 3, "zero_quantized_weights": true}})"}),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    Zero, DsRule,
    ::testing::Values(
        RuleCase{"LegacyStageOne", R"({"zero_optimization": {"stage": 1, "legacy_stage1": true}})",
                 "the old stage 1 was removed",
                 R"({"zero_optimization": {"stage": 1, "legacy_stage1": false}})"},
        RuleCase{"Predivide",
                 R"({"gradient_predivide_factor": 2.0, "zero_optimization": {"stage": 2}})",
                 "must be 1 with reduce_scatter at stage 2",
                 R"({"gradient_predivide_factor": 2.0,
                    "zero_optimization": {"stage": 2, "reduce_scatter": false}})"},
        RuleCase{"Prescale", R"({"prescale_gradients": true, "zero_optimization": {"stage": 3}})",
                 "must be off with reduce_scatter at stage 3",
                 R"({"prescale_gradients": true, "zero_optimization": {"stage": 1}})"},
        RuleCase{"SumAtStageThree",
                 R"({"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 3}})",
                 "sum does not work with ZeRO stage 3",
                 R"({"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 2}})"},
        RuleCase{"SumWithZenFlow",
                 R"({"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 2,
                    "zenflow": {"topk_ratio": 0.1}}})",
                 "sum does not work with ZenFlow",
                 R"({"zero_optimization": {"stage": 2, "zenflow": {"topk_ratio": 0.1}}})"},
        RuleCase{"SumWithDeepCompile",
                 R"({"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 1},
                    "compile": {"deepcompile": true}})",
                 "sum does not work with DeepCompile",
                 R"({"zero_optimization": {"stage": 1}, "compile": {"deepcompile": true}})"},
        RuleCase{"OddBucket",
                 R"({"zero_optimization": {"stage": 1, "allgather_bucket_size": 1001}})",
                 "1001 is odd; expected a multiple of 2",
                 R"({"zero_optimization": {"stage": 3, "allgather_bucket_size": 1001}})"},
        RuleCase{"QuantizedGradientsNeedReduceScatter",
                 R"({"zero_optimization": {"stage": 3, "zero_quantized_gradients": true,
                    "reduce_scatter": false}})",
                 "quantized gradients need reduce_scatter",
                 R"({"zero_optimization": {"stage": 3, "zero_quantized_gradients": true}})"},
        RuleCase{"PartialOffload",
                 R"({"zero_optimization": {"stage": 2,
                    "offload_optimizer": {"device": "cpu", "ratio": 0.5}}})",
                 "0.5 at stage 2: a part is offloaded only at stage 3",
                 R"({"zero_optimization": {"stage": 3,
                    "offload_optimizer": {"device": "cpu", "ratio": 0.5}}})"},
        RuleCase{"NvmePath",
                 R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})",
                 "zero_optimization.offload_param.nvme_path: offload to nvme needs a path",
                 R"({"zero_optimization": {"stage": 3,
                    "offload_param": {"device": "nvme", "nvme_path": "/nvme"}}})"},
        RuleCase{"SecondaryShards",
                 R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 3}})",
                 "zero_hpz_partition_size: 3 does not divide the 8 ranks",
                 R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4}})"},
        RuleCase{"ShardGroups", R"({"zero_optimization": {"stage": 3, "mics_shard_size": 3}})",
                 "mics_shard_size: 3 does not divide the 8 ranks",
                 R"({"zero_optimization": {"stage": 3, "mics_shard_size": 4}})"},
        RuleCase{"ShardGroupsWithOffload",
                 R"({"zero_optimization": {"stage": 3, "mics_shard_size": 4,
                    "offload_optimizer": {"device": "cpu"}}})",
                 "MiCS with 2 replicas does not work with optimizer offload",
                 R"({"zero_optimization": {"stage": 3, "mics_shard_size": 8,
                    "offload_optimizer": {"device": "cpu"}}})"},
        RuleCase{"CompileOffloadsExclude",
                 R"({"zero_optimization": {"stage": 3}, "compile": {"deepcompile": true,
                    "offload_activation": true, "offload_parameters": true}})",
                 "excludes offload_opt_states and offload_parameters",
                 R"({"zero_optimization": {"stage": 3}, "compile": {"deepcompile": true,
                    "offload_activation": true}})"},
        RuleCase{"CompileStatesAndParameters",
                 R"({"zero_optimization": {"stage": 3}, "compile": {"deepcompile": true,
                    "offload_opt_states": true, "offload_parameters": true}})",
                 "compile.offload_opt_states: excludes offload_parameters",
                 R"({"zero_optimization": {"stage": 3}, "compile": {"deepcompile": true,
                    "offload_opt_states": true}})"},
        RuleCase{"CompileStatesWithZeroOffload",
                 R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
                    "compile": {"deepcompile": true, "offload_opt_states": true}})",
                 "does not work with zero_optimization.offload_optimizer",
                 R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
                    "compile": {"deepcompile": true, "offload_parameters": true}})"},
        RuleCase{"UnmanagedAccumulationAndOverlap",
                 R"({"managed_gradient_accumulation": false,
                    "zero_optimization": {"stage": 1, "overlap_comm": true}})",
                 "false does not work with overlap_comm below stage 2",
                 R"({"managed_gradient_accumulation": false,
                    "zero_optimization": {"stage": 2, "overlap_comm": true}})"},
        RuleCase{"UnmanagedAccumulationAndDeepCompile",
                 R"({"managed_gradient_accumulation": false, "zero_optimization": {"stage": 1},
                    "compile": {"deepcompile": true}})",
                 "false does not work with DeepCompile",
                 R"({"managed_gradient_accumulation": false, "zero_optimization": {"stage": 1}})"},
        RuleCase{"UnmanagedAccumulationAndAmp",
                 R"({"managed_gradient_accumulation": false, "amp": {"enabled": true}})",
                 "false does not work with amp", R"({"managed_gradient_accumulation": false})"}),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    Optimizer, DsRule,
    ::testing::Values(
        RuleCase{"UnknownOptimizer", R"({"optimizer": {"type": "AdmaW"}})",
                 "unknown optimizer 'AdmaW'", R"({"optimizer": {"type": "RMSprop"}})"},
        RuleCase{"AnyCase", R"({"optimizer": {"type": "sgd"}})", "did you mean 'SGD'?",
                 R"({"optimizer": {"type": "ADAMW"}})"},
        RuleCase{"UntestedWithZero",
                 R"({"optimizer": {"type": "Lamb"}, "zero_optimization": {"stage": 1}})",
                 "ZeRO was not tested with Lamb",
                 R"({"optimizer": {"type": "Lamb"}, "zero_optimization": {"stage": 1},
                    "zero_allow_untested_optimizer": true})"},
        RuleCase{"OneBitWithZero",
                 R"({"optimizer": {"type": "OneBitAdam"}, "zero_optimization": {"stage": 1},
                    "fp16": {"enabled": true}})",
                 "the 1-bit optimizers do not work with ZeRO stage 1",
                 R"({"optimizer": {"type": "OneBitAdam"}, "fp16": {"enabled": true}})"},
        RuleCase{"LambNeedsDynamicScale",
                 R"({"optimizer": {"type": "Lamb"}, "fp16": {"enabled": true, "loss_scale": 128}})",
                 "LAMB needs dynamic loss scaling",
                 R"({"optimizer": {"type": "Lamb"}, "fp16": {"enabled": true}})"},
        RuleCase{"MaxGradNorm",
                 R"({"optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1.0}}})",
                 "optimizer.params.max_grad_norm: not an argument of the optimizer; expected "
                 "'gradient_clipping' at the top level",
                 R"({"optimizer": {"type": "AdamW"}, "gradient_clipping": 1.0})"},
        RuleCase{"FusedAdamHasNoAmsgrad",
                 R"({"optimizer": {"type": "AdamW", "params": {"amsgrad": true}}})",
                 "FusedAdam has no amsgrad",
                 R"({"optimizer": {"type": "AdamW", "params": {"amsgrad": true,
                    "torch_adam": true}}})"},
        RuleCase{"StatesTypeIsOfCpuAdam",
                 R"({"optimizer": {"type": "AdamW", "params": {"fp32_optimizer_states": false}}})",
                 "only CPU Adam takes it, and this is FusedAdam",
                 R"({"optimizer": {"type": "AdamW", "params": {"fp32_optimizer_states": false}},
                    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})"},
        RuleCase{"MuonAtStageThree",
                 R"({"optimizer": {"type": "Muon"}, "zero_optimization": {"stage": 3}})",
                 "Muon at stage 3 does not work with reduce_scatter",
                 R"({"optimizer": {"type": "Muon"},
                    "zero_optimization": {"stage": 3, "reduce_scatter": false}})"},
        RuleCase{"OffloadedMuon",
                 R"({"optimizer": {"type": "Muon"}, "zero_optimization": {"stage": 2,
                    "offload_optimizer": {"device": "cpu"}}})",
                 "offloaded Muon does not work with reduce_scatter",
                 R"({"optimizer": {"type": "Muon"}, "zero_optimization": {"stage": 2}})"},
        RuleCase{"UnknownScheduler", R"({"scheduler": {"type": "WarmupDecay"}})",
                 "did you mean 'WarmupDecayLR'?",
                 R"({"scheduler": {"type": "StepLR", "params": {"step_size": 3}}})"},
        RuleCase{"RequiredArgument", R"({"scheduler": {"type": "WarmupDecayLR"}})",
                 "scheduler.params.total_num_steps: WarmupDecayLR needs it",
                 R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9}}})"},
        RuleCase{"ForeignArgument",
                 R"({"scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 9}}})",
                 "WarmupLR takes no such argument",
                 R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 9}}})"},
        RuleCase{"WarmupSteps",
                 R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}})",
                 "found 0; expected an integer of at least 1",
                 R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1}}})"}),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    Parallel, DsRule,
    ::testing::Values(
        RuleCase{"TensorParallelSizes",
                 R"({"tensor_parallel": {"autotp_size": 4, "tp": {"tp_size": 2}}})",
                 "2 differs from autotp_size 4",
                 R"({"tensor_parallel": {"autotp_size": 4, "tensor_parallel": {"tp_size": 4}}})"},
        RuleCase{"InferenceSpelling", R"({"tensor_parallel": {"tp_size": 4}})",
                 "did you mean 'tensor_parallel.autotp_size'?",
                 R"({"tensor_parallel": {"autotp_size": 4}})"},
        RuleCase{"TensorAndSequence",
                 R"({"tensor_parallel": {"autotp_size": 2}, "sequence_parallel_size": 2})",
                 "exclude each other", R"({"sequence_parallel_size": 2})"},
        RuleCase{"BalanceCoefficient", R"({"expert_parallel": {"load_balance_coeff": 0.01}})",
                 "found 0.01, which is not supported",
                 R"({"expert_parallel": {"load_balance_coeff": null}})"},
        RuleCase{"ExpertsDivideTheWorld",
                 R"({"expert_parallel": {"enabled": true, "autoep_size": 3}})",
                 "3 does not divide the 8 ranks",
                 R"({"expert_parallel": {"enabled": true, "autoep_size": 4}})"},
        RuleCase{"ExpertsAtStageThree",
                 R"({"expert_parallel": {"enabled": true, "autoep_size": 4},
                    "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4}})",
                 "does not work with expert parallelism at ZeRO stage 3",
                 R"({"expert_parallel": {"enabled": true, "autoep_size": 4},
                    "zero_optimization": {"stage": 3}})"},
        RuleCase{"ContiguousCheckpointsArePartitioned",
                 R"({"activation_checkpointing": {"contiguous_memory_optimization": true,
                    "number_checkpoints": 4}})",
                 "works only with partitioned activations",
                 R"({"activation_checkpointing": {"contiguous_memory_optimization": true,
                    "number_checkpoints": 4, "partition_activations": true}})"}),
    name_of_case);

TEST(DsRules, TorchAdamIsAskedForItsTruth) {
  const auto with = [](const std::string& value) {
    return R"({"optimizer": {"type": "Adam", "params": {"torch_adam": )" + value + "}}}";
  };
  for (const char* value : {"\"false\"", "1", "2", "[0]"})
    EXPECT_TRUE(options_of(with(value)).torch_adam) << value;
  for (const char* value : {"\"\"", "0", "[]"})
    EXPECT_FALSE(options_of(with(value)).torch_adam) << value;
  EXPECT_THAT(errors_of(with("\"yes\"")), ::testing::IsEmpty());
}

TEST(DsRules, PipelineStagesExcludeZeroTwoAndThree) {
  DsConfigContext context = on_ranks(8);
  context.pipeline_parallel = 4;
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stage": 2}})", context),
              ElementsAre(HasSubstr("a PipelineModule works only with ZeRO stages 0 and 1")));
  EXPECT_THAT(errors_of(R"({"zero_optimization": {"stage": 1}})", context), IsEmpty());
  EXPECT_THAT(warnings_of(R"({"zero_optimization": {"stage": 2}, "pipeline": {"stages": 2}})"),
              ElementsAre(HasSubstr("a PipelineModule")));
  EXPECT_THAT(warnings_of(R"({"zero_optimization": {"stage": 1, "overlap_comm": true}})", context),
              ElementsAre(HasSubstr("has no effect")));
  EXPECT_THAT(errors_of(R"({"managed_gradient_accumulation": false})", context),
              ElementsAre(HasSubstr("pipeline parallelism")));
  EXPECT_THAT(errors_of(R"({"elasticity": {"enabled": true,
                          "ignore_non_elastic_batch_info": true}})",
                        context),
              ElementsAre(HasSubstr("elasticity does not work with pipeline parallelism")));
}

TEST(DsRules, OlderVersionsHadOtherRules) {
  DsConfigContext old = on_ranks(8);
  old.version = {0, 17, 5};
  EXPECT_THAT(
      errors_of(R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}})", old),
      IsEmpty());
  old.version = {0, 19, 3};
  constexpr const char* kTensor =
      R"({"tensor_parallel": {"autotp_size": 2}, "zero_optimization": {"stage": 3}})";
  EXPECT_THAT(errors_of(kTensor, old), ElementsAre(HasSubstr("not validated with ZeRO stage 3")));
  EXPECT_THAT(errors_of(kTensor), IsEmpty());
  old.version = {0, 19, 2};
  EXPECT_THAT(errors_of(R"({"scheduler": {"type": "WarmupLR",
                          "params": {"warmup_num_steps": 0}}})",
                        old),
              IsEmpty());
}

class DsWarning : public ::testing::TestWithParam<RuleCase> {};

TEST_P(DsWarning, IsGivenOnceAndOnlyWhereItApplies) {
  EXPECT_THAT(warnings_of(GetParam().broken), ElementsAre(HasSubstr(GetParam().finding)));
  EXPECT_THAT(warnings_of(GetParam().kept), IsEmpty());
  EXPECT_THAT(errors_of(GetParam().broken), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Ignored, DsWarning,
    ::testing::Values(
        RuleCase{"OffloadParamBelowThree",
                 R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})",
                 "zero_optimization.offload_param: has no effect at ZeRO stage 2: parameters stay "
                 "on the GPU",
                 R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "none"}}})"},
        RuleCase{"OffloadOptimizerWithoutZero",
                 R"({"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}})",
                 "optimizer states and their update stay on the GPU",
                 R"({"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}})"},
        RuleCase{"ReduceBucketWithoutZero",
                 R"({"zero_optimization": {"stage": 0, "reduce_bucket_size": 1e6}})",
                 "has no effect at ZeRO stage 0: the engine reduces gradients in buckets of "
                 "500000000 elements",
                 R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": 1e6}})"},
        RuleCase{"PrefetchBelowThree",
                 R"({"zero_optimization": {"stage": 1, "stage3_prefetch_bucket_size": 1e6}})",
                 "nothing is prefetched",
                 R"({"zero_optimization": {"stage": 1, "stage3_prefetch_bucket_size": 5e7}})"},
        RuleCase{"RoundRobinAtThree",
                 R"({"zero_optimization": {"stage": 3, "round_robin_gradients": true}})",
                 "gradients keep their order",
                 R"({"zero_optimization": {"stage": 2, "round_robin_gradients": true}})"},
        RuleCase{"NvmeBelowThree",
                 R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}})",
                 "stage 2 keeps the states in host memory, not on NVMe",
                 R"({"zero_optimization": {"stage": 3,
                    "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}}})"},
        RuleCase{"FewSwapBuffers",
                 R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme",
                    "nvme_path": "/nvme", "buffer_count": 3}}})",
                 "3 buffers do not hold the 4 tensors of Adam",
                 R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme",
                    "nvme_path": "/nvme", "buffer_count": 5}}})"},
        RuleCase{"AioWithoutNvme", R"({"aio": {"block_size": 1048576}})",
                 "aio: has no effect: nothing is swapped to NVMe",
                 R"({"aio": {"block_size": 1048576}, "zero_optimization": {"stage": 3,
                    "offload_param": {"device": "nvme", "nvme_path": "/nvme"}}})"},
        RuleCase{"ElasticCheckpoints",
                 R"({"zero_optimization": {"stage": 3, "elastic_checkpoint": true}})",
                 "universal checkpoints took its place",
                 R"({"zero_optimization": {"stage": 2, "elastic_checkpoint": true}})"},
        RuleCase{"AccumulationTypeAtTwo",
                 R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"},
                    "zero_optimization": {"stage": 2}})",
                 "they stay bf16",
                 R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"},
                    "zero_optimization": {"stage": 3}})"},
        RuleCase{"ImmediateUpdate",
                 R"({"bf16": {"enabled": true, "immediate_grad_update": true},
                    "zero_optimization": {"stage": 1}})",
                 "gradients are kept by the ZeRO optimizer",
                 R"({"bf16": {"enabled": true, "immediate_grad_update": true},
                    "data_types": {"grad_accum_dtype": "fp32"},
                    "zero_optimization": {"stage": 1}})"},
        RuleCase{"SuperOffload",
                 R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu",
                    "super_offload": true}}})",
                 "super_offload",
                 R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu",
                    "super_offload": true}}})"},
        RuleCase{"DeepCompileWithoutZero", R"({"compile": {"deepcompile": true}})",
                 "falls back to torch.compile",
                 R"({"compile": {"deepcompile": true}, "zero_optimization": {"stage": 1}})"},
        RuleCase{"OptimizerWithoutType", R"({"optimizer": {"params": {"lr": 1e-3}}})",
                 "has no effect without 'type'",
                 R"({"optimizer": {"type": "Adam", "params": {"lr": 1e-3}}})"},
        RuleCase{"SchedulerWithoutType", R"({"scheduler": {"params": {"warmup_num_steps": 3}}})",
                 "has no effect without 'type'", R"({"scheduler": {"type": "WarmupLR"}})"},
        RuleCase{"OneBitWithoutFp16", R"({"optimizer": {"type": "OneBitAdam"}})",
                 "tried only with fp16",
                 R"({"optimizer": {"type": "OneBitAdam"}, "fp16": {"enabled": true}})"},
        RuleCase{"TorchAdamOffloaded",
                 R"({"optimizer": {"type": "Adam", "params": {"torch_adam": true}},
                    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})",
                 "much slower than CPU Adam",
                 R"({"optimizer": {"type": "Adam", "params": {"torch_adam": true}},
                    "zero_optimization": {"stage": 2}})"},
        RuleCase{"CpuAmsgrad",
                 R"({"optimizer": {"type": "Adam", "params": {"amsgrad": true}},
                    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})",
                 "CPU Adam has no amsgrad",
                 R"({"optimizer": {"type": "Adam", "params": {"amsgrad": false}},
                    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})"},
        RuleCase{"TensorParallelOff", R"({"tensor_parallel": {"tp": {"tp_size": 4}}})",
                 "tensor parallelism is off: autotp_size is 0 or missing; expected autotp_size 4",
                 R"({"tensor_parallel": {"autotp_size": 4}})"},
        RuleCase{"Vocabulary", R"({"vocabulary_size": 50257})", "50257 is not a multiple of 8",
                 R"({"vocabulary_size": 50304})"},
        RuleCase{"StepsWithAPoint",
                 R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1e3}}})",
                 "without point and exponent",
                 R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1000}}})"}),
    name_of_case);

TEST(DsRules, TrainerAndAccelerateWantAZeroBlock) {
  const Json config = parse_json(R"({"train_micro_batch_size_per_gpu": 1})", "ds.json");
  DsConfigContext context = on_ranks(8);
  EXPECT_THAT(check_ds_config(config, "ds.json", context).diagnostics, IsEmpty());
  context.auto_resolver = AutoResolver::accelerate;
  EXPECT_THAT(findings_of(check_ds_config(config, "ds.json", context), Severity::error),
              ElementsAre(HasSubstr("refuse a file without this block")));
}

TEST(DsRules, SwapKeysWithoutNvmeGetANote) {
  constexpr const char* kText = R"({"optimizer": {"type": "AdamW"}, "zero_optimization":
      {"stage": 3, "offload_param": {"device": "cpu", "buffer_size": 1e8}}})";
  EXPECT_THAT(notes_of(kText), ElementsAre(HasSubstr("read only with the device nvme")));
  EXPECT_THAT(warnings_of(kText), IsEmpty());
}

TEST(DsRules, OffloadWithoutAnOptimizerBlockNeedsTheProgramsOwn) {
  constexpr const char* kText =
      R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})";
  EXPECT_THAT(notes_of(kText), ElementsAre(HasSubstr("must supply DeepSpeedCPUAdam")));
  DsConfigContext context = on_ranks(8);
  context.auto_resolver = AutoResolver::accelerate;  // which exchanges the optimizer itself
  EXPECT_THAT(notes_of(kText, context), IsEmpty());
}

TEST(DsOptions, TheEngineTypeIsAbsentUnlessTheFileSpeaksOfIt) {
  EXPECT_EQ(options_of("{}").engine_dtype, std::nullopt);
  EXPECT_EQ(options_of(R"({"fp16": {"enabled": true}})").engine_dtype, DType::f16);
  EXPECT_EQ(options_of(R"({"fp16": {}})").engine_dtype, DType::f32);
  const DeepSpeedOptions autocast =
      options_of(R"({"torch_autocast": {"enabled": true, "dtype": "bfloat16"}})");
  EXPECT_EQ(autocast.engine_dtype, DType::f32);
  EXPECT_TRUE(autocast.torch_autocast);
  EXPECT_EQ(autocast.torch_autocast_dtype, DType::bf16);
}

TEST(DsOptions, AnEmptyFileGivesTheDefaultsOfThePlan) {
  const DeepSpeedOptions loaded = options_of("{}");
  const DeepSpeedOptions plain;
  EXPECT_EQ(loaded.zero.stage, plain.zero.stage);
  EXPECT_EQ(loaded.zero.reduce_bucket_size, plain.zero.reduce_bucket_size);
  EXPECT_EQ(loaded.zero.allgather_bucket_size, plain.zero.allgather_bucket_size);
  EXPECT_EQ(loaded.zero.sub_group_size, plain.zero.sub_group_size);
  EXPECT_EQ(loaded.zero.prefetch_bucket_size, plain.zero.prefetch_bucket_size);
  EXPECT_EQ(loaded.zero.param_persistence_threshold, plain.zero.param_persistence_threshold);
  EXPECT_EQ(loaded.zero.model_persistence_threshold, plain.zero.model_persistence_threshold);
  EXPECT_EQ(loaded.zero.max_live_parameters, plain.zero.max_live_parameters);
  EXPECT_EQ(loaded.zero.max_reuse_distance, plain.zero.max_reuse_distance);
  EXPECT_EQ(loaded.zero.offload_param.buffer_count, plain.zero.offload_param.buffer_count);
  EXPECT_EQ(loaded.zero.offload_param.buffer_size, plain.zero.offload_param.buffer_size);
  EXPECT_EQ(loaded.zero.offload_param.max_in_cpu, plain.zero.offload_param.max_in_cpu);
  EXPECT_EQ(loaded.zero.offload_optimizer.buffer_count, plain.zero.offload_optimizer.buffer_count);
  EXPECT_EQ(loaded.zero.offload_optimizer.pin_memory, plain.zero.offload_optimizer.pin_memory);
  EXPECT_EQ(loaded.zero.mics_shard_size, plain.zero.mics_shard_size);
  EXPECT_EQ(loaded.zero.hpz_partition_size, plain.zero.hpz_partition_size);
  EXPECT_EQ(loaded.check_grad_overflow, plain.check_grad_overflow);
  EXPECT_EQ(loaded.aio.block_size, plain.aio.block_size);
  EXPECT_EQ(loaded.tensor_parallel, 1);
  EXPECT_EQ(loaded.pipeline, std::nullopt);
}

}  // namespace
}  // namespace shardplan
