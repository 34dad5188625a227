// Keys of published configurations: torchtitan's of 2024, Megatron-LM's Mixtral script, BLOOM's.
#include <gmock/gmock.h>

#include "import_testing.h"

namespace shardplan::importing::published_files_test {
namespace {

constexpr const char* kTitan2024 = R"(
[model]
name = "llama3"
flavor = "8B"
norm_type = "rmsnorm"
[training]
batch_size = 8
seq_len = 8192
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
[experimental]
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1F1B"
enable_async_tensor_parallel = true
[activation_checkpoint]
mode = "full"
[float8]
)";

/// Until the spring of 2025 degrees were keys of training and experimental, and fp8 a switch.
TEST(Torchtitan, TakesTheNamesOfItsFirstVersions) {
  const Imported found = import_text(std::string(kTitan2024) + "enable_float8_linear = true\n");
  EXPECT_EQ(found.job.at("parallel").at("tensor"), 2);
  EXPECT_EQ(found.job.at("parallel").at("pipeline"), 2);
  EXPECT_EQ(found.job.at("precision").at("linear"), "fp8-tensorwise");
  // As many micro-batches as there are stages, where nothing else is said.
  EXPECT_EQ(found.job.at("workload").at("micro_batch"), 4);
  EXPECT_TRUE(noted(found, Note::Kind::took, "training.tensor_parallel_degree"));
  EXPECT_FALSE(noted(found, Note::Kind::warning, "training.data_parallel_shard_degree"));
  const Json without = job_of(std::string(kTitan2024) + "enable_float8_linear = false\n");
  EXPECT_EQ(without.at("precision"), "bf16-autocast");
}

/// training/arguments.py: beside rope it changes nothing.
TEST(Megatron, TurnsHeadsBesideNoPositionEmbedding) {
  const std::string script =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
      "--num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --vocab-size 32000 "
      "--max-position-embeddings 512 --transformer-impl transformer_engine ";
  const auto turns = [&](const char* how) {
    return job_of(script + how).at("model").at("position_embedding_type");
  };
  EXPECT_EQ(turns("--position-embedding-type rope --no-position-embedding"), "rope");
  EXPECT_EQ(turns("--no-position-embedding"), "none");
}

/// What is shown before it runs is no program of its own, and has less of the environment.
TEST(Scripts, ABlockingRunIsEstimatedSo) {
  const std::string command =
      "CMD=\"python pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
      "--seq-length 512 --micro-batch-size 1 --vocab-size 32000\"\necho $CMD\n";
  const std::string runs = "srun bash -c \"torchrun --nproc_per_node 8 $CMD\"\n";
  const Imported blocking = import_text(command + "export CUDA_LAUNCH_BLOCKING=1\n" + runs);
  EXPECT_EQ(blocking.job.at("launch_blocking"), true);
  EXPECT_TRUE(noted(blocking, Note::Kind::took, "CUDA_LAUNCH_BLOCKING"));
  EXPECT_FALSE(job_of(command + "export CUDA_LAUNCH_BLOCKING=0\n" + runs)
                   .contains("launch_blocking"));
}

/// 1,024 sequences of 440 GPUs are three for each, whatever was asked at once.
TEST(Foundry, SaysWhyAMicroBatchIsSmaller) {
  const Imported found = import_text(
      "model: {name: mpt_causal_lm, d_model: 1024, n_heads: 16, n_layers: 4, vocab_size: 50368}\n"
      "max_seq_len: 2048\nglobal_train_batch_size: 1024\ndevice_train_microbatch_size: 8\n"
      "optimizer: {name: decoupled_adamw}\nprecision: amp_bf16\ntrain_loader: {name: text}\n"
      "fsdp_config: {sharding_strategy: FULL_SHARD, mixed_precision: PURE}\n",
      {{"cluster", "55x8xA100-40GB"}});
  EXPECT_EQ(found.job.at("workload").at("micro_batch"), 3);
  EXPECT_TRUE(noted(found, Note::Kind::assumed, "micro-batch"));
}

TEST(TrainingArguments, TakeALengthByItsShorterName) {
  EXPECT_EQ(job_of("model_id: gpt2\nper_device_train_batch_size: 1\nmax_seq_len: 512\n"
                   "bf16: true\n")
                .at("workload")
                .at("sequence_length"),
            512);
}

}  // namespace
}  // namespace shardplan::importing::published_files_test
