// Keys that change what is estimated and that no other test of a kind has.
#include <gmock/gmock.h>

#include "estimate/estimate.h"
#include "import_testing.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::importing::newer_keys_test {
namespace {

using ::testing::HasSubstr;

Job loaded(const Json& job) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(job, "job.json", {.hardware = &hardware});
}

Estimate estimate_of(const Json& job) {
  const Job one = loaded(job);
  return estimate(one.model, one.plan, load_calibration());
}

std::string titan(std::string_view name, std::string_view flavor, std::string_view more = "") {
  return "[model]\nname = \"" + std::string(name) + "\"\nflavor = \"" + std::string(flavor) +
         "\"\n[training]\nlocal_batch_size = 1\nseq_len = 2048\n" + std::string(more);
}

/// Counted by hand from models/llama4/__init__.py: 16 experts and a shared one in every layer, or
/// 128 in each second one.
TEST(Torchtitan, CountsLlama4) {
  constexpr std::int64_t kHidden = 5120, kFfn = 8192, kEnds = 2 * 202048 * kHidden + kHidden;
  constexpr std::int64_t kAttention = 2 * kHidden * kHidden + 2 * kHidden * 1024 + 2 * kHidden;
  const auto sparse = [](std::int64_t experts) {
    return (experts + 1) * 3 * kHidden * kFfn + experts * (kHidden + 1);
  };
  const Job scout = loaded(job_of(titan("llama4", "17bx16e"), {{"cluster", "64xH100"}}));
  EXPECT_EQ(scout.model.parameter_count(), kEnds + 48 * (kAttention + sparse(16)));
  const Job maverick = loaded(job_of(titan("llama4", "17bx128e"), {{"cluster", "64xH100"}}));
  EXPECT_EQ(maverick.model.parameter_count(),
            kEnds + 48 * kAttention + 24 * (sparse(128) + 3 * kHidden * 2 * kFfn));
}

/// core/builders/base.py: beside adapters the offloader is there in the place of recomputation.
TEST(Axolotl, OffloadsAllThatAdaptersKeep) {
  const std::string file =
      "base_model: NousResearch/Meta-Llama-3-8B\ndatasets: [{path: a, type: alpaca}]\n"
      "gradient_checkpointing: true\nbf16: true\nactivation_offloading: ";
  const std::string lora = "\nadapter: lora\nlora_r: 8\nlora_target_linear: true\n";
  const Json adapters = job_of(file + "true" + lora);
  EXPECT_EQ(adapters.at("activation_offloading"), "streams");
  EXPECT_EQ(adapters.at("checkpointing"), "none");
  EXPECT_EQ(job_of(file + "legacy" + lora).at("activation_offloading"), "one_stream");
  const Json full = job_of(file + "true\n");
  EXPECT_EQ(full.at("activation_offloading"), "streams");
  EXPECT_EQ(full.at("checkpointing"), "full");
  const Json inputs = job_of(file + "hidden_states" + lora);
  EXPECT_FALSE(inputs.contains("activation_offloading"));
  EXPECT_EQ(inputs.at("checkpointing").at("offload"), true);
  const Json sharded =
      job_of(file + "true\nfsdp_version: 2\nfsdp_config: {offload_params: false}\n");
  EXPECT_EQ(sharded.at("checkpointing").at("offload"), true);
}

TEST(Axolotl, StopsAtOffloadingWithoutCheckpointing) {
  EXPECT_THAT(error_of("base_model: NousResearch/Meta-Llama-3-8B\ndatasets: [{path: a}]\n"
                       "activation_offloading: true\n"),
              HasSubstr("axolotl stops"));
}

/// Liger's kernels are estimated in a compiled model where rotation and fused loss are among them.
TEST(TrainingArguments, CompileLigersKernels) {
  const std::string file =
      "model_name_or_path: Qwen/Qwen2.5-0.5B\nper_device_train_batch_size: 1\nbf16: true\n"
      "dtype: bfloat16\ntorch_compile: true\nuse_liger_kernel: true\n";
  EXPECT_TRUE(job_of(file).contains("compile"));
  const Imported one =
      import_text(file + "liger_kernel_config: {rope: false, fused_linear_cross_entropy: false}\n");
  EXPECT_FALSE(one.job.contains("compile"));
  EXPECT_TRUE(noted(one, Note::Kind::warning, "torch_compile"));
}

TEST(Torchtitan, ShrinksModelsOfTransformers) {
  const std::string file = titan("transformers_modeling_backend", "debugmodel",
                                 "[hf_transformers]\nmodel = \"Qwen/Qwen3-4B-Instruct-2507\"\n");
  const Json model = job_of(file).at("model");
  EXPECT_EQ(model.at("model_type"), "qwen3");
  EXPECT_EQ(model.at("hidden_size"), 256);
  EXPECT_EQ(model.at("num_hidden_layers"), 2);
  EXPECT_EQ(model.at("vocab_size"), 151936);
  const Imported oss = import_text(titan("gpt_oss", "20b"));
  EXPECT_EQ(oss.job.at("model").at("num_local_experts"), 32);
  EXPECT_TRUE(noted(oss, Note::Kind::warning, "model.flavor"));
}

constexpr const char* kLongTexts = R"(
base_model: NousResearch/Meta-Llama-3-8B
datasets: [{path: a, type: alpaca}]
sequence_len: 131072
micro_batch_size: 1
tiled_mlp: true
)";

/// Parts of 32,768 tokens (monkeypatch/tiled_mlp/patch.py), or as many as are said.
TEST(Axolotl, RunsFeedForwardsInParts) {
  const std::string file(kLongTexts);
  EXPECT_EQ(job_of(file).at("mlp_tiles"), 4);
  EXPECT_EQ(job_of(file + "tiled_mlp_num_shards: 7\n").at("mlp_tiles"), 7);
  const Imported off = import_text(file + "tiled_mlp: false\ntiled_mlp_num_shards: 7\n");
  EXPECT_FALSE(off.job.contains("mlp_tiles"));
  EXPECT_TRUE(noted(off, Note::Kind::ignored, "tiled_mlp_num_shards"));
}

constexpr const char* kRecipe = R"(
step_scheduler: {global_batch_size: 8, local_batch_size: 1}
dataset: {seq_len: 1024}
optimizer: {_target_: torch.optim.Adam}
distributed: {strategy: fsdp2, ep_size: 8, activation_checkpointing: true}
model:
  pretrained_model_name_or_path: Qwen/Qwen3-30B-A3B
  backend: {dispatcher: )";

/// All tokens of eight GPUs are gathered, in the forward pass and again where it is recomputed.
TEST(Nemo, GathersTokensWherePyTorchDispatchesThem) {
  const auto job = [](const char* name) { return job_of(std::string(kRecipe) + name + "}\n"); };
  EXPECT_EQ(job("torch").at("framework").at("expert_dispatch"), "allgather");
  EXPECT_FALSE(job("deepep").at("framework").contains("expert_dispatch"));
  const Estimate all = estimate_of(job("torch")), sent = estimate_of(job("deepep"));
  const auto bytes = [](const Estimate& e, std::string_view what) {
    double sum = 0;
    for (const TrafficLine& line : e.traffic)
      if (line.what == what) sum += static_cast<double>(line.bytes_per_step);
    return sum;
  };
  constexpr double kTokens = 1024, kHidden = 2048, kLayers = 48;
  EXPECT_DOUBLE_EQ(bytes(all, "expert all-gather"), 2 * kLayers * 7 * kTokens * kHidden * 2);
  EXPECT_EQ(bytes(all, "expert all-to-all"), 0);
  EXPECT_GT(bytes(sent, "expert all-to-all"), 0);
}

TEST(Nemo, ReadsMuonAndRefusesOlderNetworksByKey) {
  std::string recipe = std::string(kRecipe) + "deepep}\n";
  recipe.replace(recipe.find("torch.optim.Adam"), 16, "dion.Muon");
  EXPECT_EQ(job_of(recipe).at("optimizer").at("name"), "muon");
  EXPECT_THAT(
      error_of("name: BERT\ntrainer: {devices: 1}\nexp_manager: {}\n"
               "model: {language_model: {config: {hidden_size: 768}}, optim: {name: adamw}}"),
      HasSubstr("model: NeMo's networks"));
}

TEST(Nemo, ReadsATeacherOnTheSameGpus) {
  const std::string recipe =
      "step_scheduler: {global_batch_size: 8, local_batch_size: 1}\ndataset: {seq_len: 512}\n"
      "model: {pretrained_model_name_or_path: meta-llama/Llama-3.2-1B, torch_dtype: bf16}\n"
      "teacher_model: {pretrained_model_name_or_path: meta-llama/Llama-3.2-3B}\nkd_ratio: 0.5\n"
      "kd_loss_fn: {temperature: 1.0}\noptimizer: {_target_: torch.optim.Adam}\n"
      "distributed: {strategy: fsdp2}\n";
  const Json workload = job_of(recipe).at("workload");
  EXPECT_EQ(workload.at("algorithm"), "asft");
  EXPECT_EQ(workload.at("models").at("reference").at("model"), "meta-llama/Llama-3.2-3B");
  EXPECT_EQ(workload.at("sequence_length"), 512);
  EXPECT_THAT(error_of(recipe + "separate_meshes: true\n"), HasSubstr("separate_meshes: is not"));
}

constexpr const char* kScript =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
    "--num-attention-heads 8 --swiglu --normalization RMSNorm --disable-bias-linear "
    "--position-embedding-type rope --attention-dropout 0 --hidden-dropout 0 --vocab-size 32000 "
    "--untie-embeddings-and-output-weights --seq-length 1024 --micro-batch-size 1 "
    "--global-batch-size 64 --bf16 --use-distributed-optimizer ";

Json script(const std::string& more) {
  return job_of(kScript + more + "\n", {{"cluster", "8xH100"}});
}

TEST(Megatron, ReadsLayersOfFurtherTokens) {
  EXPECT_EQ(script("--mtp-num-layers 1").at("framework").at("mtp_num_layers"), 1);
  EXPECT_FALSE(script("").at("framework").contains("mtp_num_layers"));
  const Json job = script(
      "--mtp-num-layers 1 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "
      "'Ett|ttmL'");
  EXPECT_EQ(job.at("parallel").at("stage_layers"), Json({2, 2}));
  EXPECT_GT(estimate_of(job).allocated.point,
            estimate_of(script("--pipeline-model-parallel-size 2")).allocated.point);
  EXPECT_THAT(error_of(std::string(kScript) +
                       "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "
                       "'Ettm|ttL' --mtp-num-layers 1\n"),
              HasSubstr("pipeline_model_parallel_layout: layers of multi-token prediction"));
}

TEST(Megatron, ReadsMuonAndDividedParameters) {
  EXPECT_EQ(script("--optimizer muon").at("optimizer").at("name"), "muon");
  EXPECT_EQ(script("--optimizer dist_muon").at("framework").at("distributed_optimizer"), true);
  const Json sharded =
      script("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params");
  EXPECT_EQ(sharded.at("framework").at("shard_parameters"), true);
  EXPECT_EQ(sharded.at("framework").at("shard_gradients"), true);
}

TEST(Megatron, TakesTheLastBatchOfASchedule) {
  const Json job = job_of(
      "num_layers: 4\nhidden_size: 512\nnum_attention_heads: 8\n"
      "micro_batch_size: 4\nvocab_size: 32000\nseq_length: 512\nspec: local\n"
      "step_batch_size_schedule: \"0:64 200B:128\"\n");
  EXPECT_EQ(job.at("workload").at("gradient_accumulation"), 128 / (4 * 8));
  EXPECT_EQ(job.at("framework").at("transformer_impl"), "local");
}

// Whole gradients until the step are more than torchtitan keeps: an upper bound, and said.
TEST(Torchtitan, StepsInTheBackwardPassAreEstimatedAsMore) {
  const std::string file =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\n"
      "[optimizer]\nearly_step_in_backward = true\n";
  EXPECT_TRUE(noted(import_text(file), Note::Kind::warning, "optimizer.early_step_in_backward"));
}

/// What only the caller's shell knows is left out, and said.
TEST(Scripts, LeaveOutArgumentsOfUnsetVariables) {
  const std::string script = "EP=$1\nARGS=(--expert-model-parallel-size $EP --no-such $2)\n" +
                             std::string(kScript) + "${ARGS[@]} --tensor-model-parallel-size $TP\n";
  const Imported imported = import_text(script);
  EXPECT_TRUE(noted(imported, Note::Kind::warning, "tensor_model_parallel_size"));
  EXPECT_TRUE(noted(imported, Note::Kind::warning, "expert_model_parallel_size"));
  EXPECT_FALSE(imported.job.contains("parallel"));
  // A switch is none of them, whatever follows on the next line.
  EXPECT_EQ(job_of(std::string(kScript) + "--tp-comm-overlap $MORE --sequence-parallel\n")
                .at("framework")
                .at("name"),
            "megatron");
}

// "$@" adds arguments: the switch before it has no value that is not set.
TEST(Scripts, KeepASwitchBeforeTheirOwnArguments) {
  for (const char* rest : {"\"$@\"", "$@", "\"${more[@]}\""}) {
    const Json job = job_of(std::string(kScript) + "--recompute-activations \\\n  " + rest + "\n");
    EXPECT_EQ(job.value("checkpointing", ""), "selective") << rest;
  }
}

TEST(Scripts, AddToTheirOwnVariables) {
  const std::string script =
      "A=(--micro-batch-size 2)\nA=(\"${A[@]}\" --global-batch-size 32)\n"
      "B=\"--bf16\"\nB=\"$B --seq-length 256\"\n"
      "python pretrain_gpt.py --num-layers 2 --hidden-size 256 "
      "--num-attention-heads 4 --vocab-size 1000 ${A[@]} $B\n";
  const Json job = job_of(script);
  EXPECT_EQ(job.at("workload").at("micro_batch"), 2);
  EXPECT_EQ(job.at("workload").at("gradient_accumulation"), 2);
  EXPECT_EQ(job.at("workload").at("sequence_length"), 256);
  EXPECT_EQ(job.at("precision"), "bf16-master");
}

constexpr const char* kAxolotl =
    "base_model: meta-llama/Llama-3.2-1B\nsequence_len: 512\nmicro_batch_size: 1\nbf16: true\n"
    "datasets: [{path: a}]\n";

TEST(Axolotl, ReadsEnergyBasedTuningAsGrpoWithAReference) {
  const std::string own = std::string(kAxolotl) + "rl: ebft\ntrl: {num_generations: 4}\n";
  EXPECT_EQ(job_of(own).at("workload").at("algorithm"), "grpo");
  EXPECT_EQ(job_of(own).at("workload").at("reference"), "copy");
  EXPECT_EQ(job_of(own + "adapter: lora\nlora_r: 8\nlora_target_linear: true\n")
                .at("workload")
                .at("reference"),
            "base");
  EXPECT_THAT(error_of(own + "ebft: {mode: strided}\n"), HasSubstr("rl: EBFT's blocks"));
}

/// common/datasets.py: images are read by a processor alone.
TEST(Axolotl, TrainsTextsWithoutAProcessor) {
  const std::string vision =
      "base_model: Qwen/Qwen2.5-VL-7B-Instruct\nsequence_len: 4096\nmicro_batch_size: 1\n"
      "bf16: true\ndatasets: [{path: a}]\n";
  EXPECT_EQ(job_of(vision).at("workload").at("images"), 0);
  EXPECT_FALSE(
      job_of(vision + "processor_type: AutoProcessor\n").at("workload").contains("images"));
  EXPECT_FALSE(job_of(kAxolotl).at("workload").contains("images"));
}

TEST(Axolotl, EstimatesGptqAsNf4) {
  const Json job = job_of(std::string(kAxolotl) +
                          "gptq: true\nadapter: lora\nlora_r: 8\nlora_target_linear: true\n");
  EXPECT_EQ(job.at("workload").at("lora").at("quantization"), "nf4");
}

TEST(LlamaFactory, DividesExpertsUnderFsdpTurbo) {
  const Json job = job_of(
      "model: Qwen/Qwen3-30B-A3B\nmodel_class: llm\nbf16: true\n"
      "dist_config: {name: fsdpturbo, ep_size: 8, ep_dispatcher: eager}\n"
      "train_dataset: a.yaml\n");
  EXPECT_EQ(job.at("framework").at("name"), "fsdp2");
  EXPECT_EQ(job.at("parallel").at("expert"), 8);
  EXPECT_EQ(job.at("precision"), "bf16-pure");
}

TEST(Axolotl, TrainsAHeadOfStepRewards) {
  const Json job = job_of(std::string(kAxolotl) + "process_reward_model: true\nnum_labels: 2\n");
  const Job whole = loaded(job_of(kAxolotl));
  // The vocabulary's head, which is tied, gives way to two rows and their biases.
  EXPECT_EQ(loaded(job).model.parameter_count(), whole.model.parameter_count() + 2 * 2048 + 2);
}

TEST(MsSwift, RefusesGroupsOfRayByKey) {
  EXPECT_THAT(error_of("rlhf_type: grpo\nmodel: Qwen/Qwen3-8B\ntrain: {gpus: 4}\n"
                       "rollout: {gpus: 4}\n"),
              HasSubstr("train.gpus: groups of GPUs"));
}

}  // namespace
}  // namespace shardplan::importing::newer_keys_test
