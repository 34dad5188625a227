// What trainers make of FSDP2 that PyTorch's defaults do not say: each checked against its source.
#include <gmock/gmock.h>

#include "estimate/estimate.h"
#include "import_testing.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::importing::fsdp2_trainers_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAxolotl = R"(
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: x, type: alpaca}]
micro_batch_size: 1
sequence_len: 1024
bf16: true
fsdp_version: 2
fsdp_config:
  reshard_after_forward: true
  auto_wrap_policy: TRANSFORMER_BASED_WRAP
)";

Estimate estimate_of(const Json& job) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const Job loaded = load_job(job, "job.json", {.hardware = &hardware});
  return estimate(loaded.model, loaded.plan, load_calibration());
}

/// monkeypatch/accelerate/fsdp2.py: no cast to fp32, and one unit for what is no block.
TEST(AxolotlFsdp2, ShardsTheTypeThatWasLoaded) {
  const Json job = job_of(kAxolotl);
  EXPECT_EQ(job["framework"]["name"], "fsdp2");
  EXPECT_EQ(job["precision"], "bf16-pure");
  EXPECT_EQ(job["trainer"], "axolotl");
  Json apart = job;
  apart["trainer"] = "hf_trainer";
  apart["precision"] = {{"params", "bf16"}};
  EXPECT_GT(estimate_of(job).allocated.point, estimate_of(apart).allocated.point);
  std::string first = kAxolotl;
  first.replace(first.find("fsdp_version: 2"), 15, "fsdp_version: 1");
  EXPECT_EQ(job_of(first)["precision"], "bf16-autocast");
}

/// utils/distributed.py: dp_shard_size GPUs, and those of a context, divide one copy of the states.
TEST(AxolotlFsdp2, HasCopiesOfTheStates) {
  const std::string base = kAxolotl;
  const auto shards = [&](const std::string& more) {
    return job_of(base + more).at("framework").value("hybrid_shard_size", 0);
  };
  EXPECT_EQ(shards("dp_shard_size: 4\n"), 4);
  EXPECT_EQ(shards("dp_shard_size: 2\ndp_replicate_size: 2\ncontext_parallel_size: 2\n"), 4);
  EXPECT_EQ(shards("dp_shard_size: 1\ndp_replicate_size: 1\n"), 0);
  EXPECT_THAT(error_of(base + "dp_replicate_size: 2\n"), HasSubstr("dp_shard_size"));
  const std::string alone = base.substr(0, base.find("fsdp_version"));
  EXPECT_THAT(error_of(alone + "dp_shard_size: 4\n"), HasSubstr("fsdp_config"));
}

/// A network that nothing else divides sends rows to experts as every other does. Weights and their
/// states are divided whatever the degree; gathered are fewer.
TEST(NemoFsdp2, DividesExpertsOfStateSpaceModels) {
  const auto estimate_over = [](int experts) {
    return estimate_of(job_of(R"(
step_scheduler: {global_batch_size: 8, local_batch_size: 1}
model: {pretrained_model_name_or_path: nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16}
optimizer: {_target_: torch.optim.Adam}
dataset: {seq_len: 512}
distributed: {strategy: fsdp2, activation_checkpointing: true, ep_size: )" +
                                  std::to_string(experts) + "}\n",
                              {{"cluster", "8xH100"}}));
  };
  const Estimate whole = estimate_over(1), divided = estimate_over(8);
  const auto of = [](const Estimate& e, Category category) {
    for (const CategoryLine& c : e.breakdown)
      if (c.category == category) return std::pair{c.resident, c.at_peak};
    return std::pair{std::int64_t{0}, std::int64_t{0}};
  };
  const auto states = of(whole, Category::optimizer_states).first;
  EXPECT_NEAR(static_cast<double>(of(divided, Category::optimizer_states).first),
              static_cast<double>(states), 0.01 * static_cast<double>(states));
  EXPECT_LT(of(divided, Category::gathered_parameters).second,
            of(whole, Category::gathered_parameters).second);
}

/// components/utils/model_utils.py and shared/multimodal_fsdp.py of NeMo Automodel 0.5: the tower
/// is frozen where the file says anything of freezing, and goes with the root's parameters.
TEST(NemoFsdp2, FreezesTheTowerWithTheRoot) {
  constexpr const char* kFile = R"(
step_scheduler: {global_batch_size: 8, local_batch_size: 1}
model: {pretrained_model_name_or_path: google/gemma-4-31B-it, torch_dtype: bf16, attn_implementation: eager}
optimizer: {_target_: torch.optim.AdamW}
dataset: {seq_len: 2048}
distributed: {strategy: fsdp2, tp_size: 4}
)";
  const Json trained = job_of(kFile);
  EXPECT_FALSE(trained["workload"].contains("frozen"));
  EXPECT_FALSE(trained["framework"].contains("frozen_tower"));
  const std::string frozen = std::string(kFile) + "freeze_config: {freeze_embeddings: true}\n";
  const Json job = job_of(frozen);
  EXPECT_EQ(job["workload"]["frozen"], "tower");
  EXPECT_EQ(job["framework"]["frozen_tower"], "root");
  EXPECT_EQ(job["attention"], "eager");
  EXPECT_LT(estimate_of(job).allocated.point, estimate_of(trained).allocated.point);
  EXPECT_GT(estimate_of(job).most_over, 1);
  std::string layers = frozen, context = frozen;
  layers.replace(layers.find("tp_size: 4"), 10, "multimodal: {frozen_sharding: per_layer}");
  EXPECT_FALSE(job_of(layers)["framework"].contains("frozen_tower"));
  context.replace(context.find("tp_size: 4"), 10, "cp_size: 2");
  EXPECT_EQ(job_of(context)["attention"], "sdpa");  // _transformers/kernel_patches.py
  EXPECT_GT(estimate_of(job_of(context)).allocated.point, 0);
}

/// accelerate 1.15, utils/fsdp_utils.py: what does not train keeps its type.
TEST(AccelerateFsdp2, LeavesAFrozenModelInTheTypeThatWasLoaded) {
  constexpr const char* kArguments = R"({"model_name_or_path": "llama-3.2-1b", "bf16": true,
    "per_device_train_batch_size": 1, "use_peft": true, "max_length": 512, "fsdp": "full_shard",
    "fsdp_config": {"fsdp_version": 2}, "dtype": "bfloat16"})";
  EXPECT_EQ(job_of(kArguments)["precision"], "bf16-pure");
  std::string full = kArguments;
  full.replace(full.find("\"use_peft\": true, "), 18, "");
  EXPECT_EQ(job_of(full)["precision"], "bf16-autocast");
}

/// models/llama3/infra/parallelize.py: embeddings apart, norm and head kept gathered.
TEST(TorchtitanFsdp2, FreesEmbeddingsBetweenThePasses) {
  const Json job = job_of(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n"
      "seq_len = 2048\n[activation_checkpoint]\nmode = \"full\"\n");
  EXPECT_EQ(job["framework"]["reduce_dtype"], "fp32");
  Json whole = job;
  whole["trainer"] = "loop";
  EXPECT_LT(estimate_of(job).allocated.point, estimate_of(whole).allocated.point);
}

/// v1/plugins/trainer_plugins/distributed/fsdp2.py.
TEST(LlamaFactoryV1Fsdp2, TakesItsOwnOptions) {
  constexpr const char* kFile = R"(
model: meta-llama/Llama-3.2-1B
train_dataset: x
micro_batch_size: 1
dist_config:
  name: fsdp2
)";
  const Json usual = job_of(kFile)["framework"];
  EXPECT_EQ(usual, (Json{{"name", "fsdp2"}, {"reduce_dtype", "fp32"}}));
  const Json said = job_of(std::string(kFile) +
                           "  reshard_after_forward: false\n  offload_params: true\n")["framework"];
  EXPECT_EQ(said["reshard_after_forward"], false);
  EXPECT_EQ(said["cpu_offload"], true);
}

/// verl/trainer/fsdp_sft_trainer.py: fp32 shards, bf16 in computing, fp32 in reducing.
TEST(VerlSupervised, IsReadWithItsDefaults) {
  constexpr const char* kCommand = R"(torchrun --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer \
    data.train_files=x data.micro_batch_size_per_gpu=2 optim.lr=1e-4 \
    model.partial_pretrain=Qwen/Qwen2.5-0.5B-Instruct ulysses_sequence_parallel_size=2 \
    use_remove_padding=true)";
  const Json job = job_of(kCommand, {{"cluster", "H100"}});
  EXPECT_EQ(job["cluster"], "1x4xH100");
  EXPECT_EQ(job["framework"], (Json{{"name", "fsdp2"}, {"reduce_dtype", "fp32"}}));
  EXPECT_EQ(job["precision"], "bf16-autocast");
  EXPECT_EQ(job["parallel"]["sequence"], 2);
  EXPECT_EQ(job["workload"]["micro_batch"], 2);
  EXPECT_EQ(job["workload"]["sequence_length"], 1024);
  EXPECT_EQ(job["workload"]["gradient_accumulation"], 64);  // 256 over two pairs of GPUs
  EXPECT_EQ(job["checkpointing"], "full");
  EXPECT_GT(estimate_of(job).allocated.point, 0);
  EXPECT_THAT(error_of(std::string(kCommand) + " model.strategy=ddp"), HasSubstr("fsdp or fsdp2"));
}

}  // namespace
}  // namespace shardplan::importing::fsdp2_trainers_test
