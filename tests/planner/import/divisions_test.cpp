// Degrees of parallelism in trainers' files.
#include "import_testing.h"

namespace shardplan::importing {
namespace {

TEST(Nemo, StagesTakeTheLocalBatchInParts) {
  const std::string text = R"(
step_scheduler: {global_batch_size: 64, local_batch_size: 32}
model: {pretrained_model_name_or_path: llama-2-7b}
optimizer: {_target_: torch.optim.Adam}
distributed:
  strategy: fsdp2
  pp_size: 2
  cp_size: 2
  tp_size: 2
  sequence_parallel: true
  pipeline: {pp_schedule: interleaved1f1b, pp_microbatch_size: 4, )";
  const Json job = job_of(text + "layers_per_stage: 4}\n");
  const Json& parallel = job.at("parallel");
  EXPECT_EQ(parallel.at("pipeline"), 2);
  EXPECT_EQ(parallel.at("context"), 2);
  EXPECT_EQ(parallel.at("schedule"), "interleaved");
  EXPECT_EQ(parallel.at("virtual_pipeline"), 4) << "32 layers in parts of 4, over 2 stages";
  EXPECT_EQ(parallel.at("balance"), "blocks");
  EXPECT_EQ(parallel.at("sequence_parallel"), true);
  EXPECT_EQ(job.at("workload").at("micro_batch"), 4);
  EXPECT_EQ(job.at("framework").at("reshard_after_forward"), false);
  // 5 parts of 7 layers.
  EXPECT_NE(error_of(text + "layers_per_stage: 7}\n").find("layers_per_stage"), std::string::npos);
  EXPECT_EQ(job_of(text + "layers_per_stage: 7, round_virtual_stages_to_pp_multiple: up}\n")
                .at("parallel")
                .at("virtual_pipeline"),
            3);
  // A model that the catalogue lacks, beside one that a flag names.
  std::string other = text + "layers_per_stage: 6}\n";
  other.replace(other.find("llama-2-7b"), 10, "nobody/knows");
  EXPECT_NE(error_of(other).find("layers are not known"), std::string::npos);
  EXPECT_EQ(job_of(other, {{"cluster", "8xH100"}, {"model", "qwen3-30b-a3b"}})
                .at("parallel")
                .at("virtual_pipeline"),
            4);
}

TEST(Accelerate, ItsMeshGivesCopiesContextAndRotation) {
  const Json job = import_text(R"(
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_processes: 8
parallelism_config:
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 2
  parallelism_config_cp_size: 2
  parallelism_config_cp_comm_strategy: alltoall
fsdp_config: {fsdp_version: 2}
)",
                               {{"model", "llama-2-7b"}, {"cluster", "8xH100-80GB"}})
                       .job;
  EXPECT_EQ(job.at("parallel").at("context"), 2);
  EXPECT_EQ(job.at("framework").at("hybrid_shard_size"), 4) << "context GPUs divide states too";
  EXPECT_EQ(job.at("framework").at("context_rotation"), "alltoall");
}

TEST(Torchtitan, StagesTakeTheLocalBatchInParts) {
  const std::string text = R"(
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 8
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 2
pipeline_parallel_degree = 4
context_parallel_degree = 2
pipeline_parallel_microbatch_size = 2
pipeline_parallel_schedule = ")";
  const Json job = job_of(text + "ZBVZeroBubble\"\n");
  EXPECT_EQ(job.at("parallel").at("schedule"), "zbv");
  EXPECT_EQ(job.at("parallel").at("virtual_pipeline"), 2);
  EXPECT_EQ(job.at("workload").at("micro_batch"), 2);
  EXPECT_EQ(job.at("workload").at("gradient_accumulation"), 4);
  EXPECT_EQ(job.at("framework").at("reshard_after_forward"), false);
  EXPECT_EQ(job.at("framework").at("hybrid_shard_size"), 4);
  EXPECT_NE(error_of(text + "DualPipeV\"\n").find("pipeline_parallel_schedule"), std::string::npos);
}

/// ZeRO-3's parameters on the host are of the type in which the model was loaded. axolotl casts its
/// embeddings and norms to fp32, and back for kernels that want it.
TEST(Divisions, WeightsOnTheHostAreAsTheTrainerLoadsThem) {
  const auto type = [](const std::string& file) {
    const Json framework =
        job_of(file +
               "deepspeed: {bf16: {enabled: true}, zero_optimization: {stage: 3, offload_param: "
               "{device: cpu}}}\n")
            .at("framework");
    return framework.value("model_dtype", "");
  };
  const std::string axolotl = "base_model: llama-3.1-8b\nbf16: true\ndatasets: [{path: a}]\n";
  EXPECT_EQ(type(axolotl + "attn_implementation: flash_attention_2\n"), "bf16");
  EXPECT_EQ(type(axolotl + "attn_implementation: sdpa\n"), "");
  EXPECT_EQ(
      type(axolotl + "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n"),
      "bf16");
  EXPECT_EQ(type("finetuning_type: full\nstage: sft\ntemplate: llama3\nbf16: true\n"
                 "model_name_or_path: llama-3.1-8b\n"),
            "bf16");
}

}  // namespace
}  // namespace shardplan::importing
