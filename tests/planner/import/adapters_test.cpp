// What trainers' files say of adapters, of products in 8 bits and of units, as fields of a job.
#include "import_testing.h"

namespace shardplan::importing::adapters_test {
namespace {

Json lora_of(const Json& job) {
  return job.at("workload").at("lora");
}

TEST(AdapterKeys, OfAxolotlAreFieldsOfTheJob) {
  const Json lora = lora_of(job_of(R"(
base_model: llama-3.1-8b
adapter: lora
lora_r: 8
lora_dropout: 0.05
peft_use_dora: true
lora_target_modules: 'model.layers.[\d]+.(mlp|self_attn).(up|q)_proj'
lora_modules_to_save: [embed_tokens, lm_head]
bf16: true
datasets: [{path: a}]
)"));
  EXPECT_EQ(lora.at("dropout"), 0.05);
  EXPECT_EQ(lora.at("dora"), true);
  EXPECT_EQ(lora.at("modules_to_save"), Json({"embed_tokens", "lm_head"}));
  EXPECT_EQ(lora.at("targets"), Json({"up_proj", "q_proj"}));
  EXPECT_FALSE(lora.contains("saved_in_fp32"));
}

TEST(AdapterKeys, BesideNoAdapterSayNothing) {
  const Json job = job_of(R"(
base_model: llama-3.1-8b
lora_dropout: 0.05
lora_modules_to_save: [lm_head]
bf16: true
datasets: [{path: a}]
)");
  EXPECT_FALSE(job.at("workload").contains("lora"));
}

TEST(AdapterKeys, SilenceIsEachTrainersOwnDropout) {
  EXPECT_EQ(lora_of(job_of("tuner_type: lora\nmodel: llama-3.1-8b\n")).at("dropout"), 0.05);
  EXPECT_EQ(lora_of(job_of("use_peft: true\nmodel_name_or_path: llama-3.1-8b\nlora_r: 8\n"
                           "per_device_train_batch_size: 1\nmax_length: 512\n"))
                .at("dropout"),
            0.05);
  EXPECT_FALSE(lora_of(job_of("finetuning_type: lora\nstage: sft\ntemplate: llama3\n"
                              "model_name_or_path: llama-3.1-8b\n"))
                   .contains("dropout"));
}

TEST(AdapterKeys, LlamaFactoryCastsCopiesAndTurnsInputs) {
  const char* start =
      "stage: sft\ntemplate: llama3\nmodel_name_or_path: llama-3.1-8b\nbf16: true\n";
  const Json cast = lora_of(
      job_of(std::string(start) + "finetuning_type: lora\nadditional_target: embed_tokens\n"));
  EXPECT_EQ(cast.at("saved_in_fp32"), true);
  const Json kept =
      lora_of(job_of(std::string(start) +
                     "finetuning_type: lora\nadditional_target: embed_tokens\npure_bf16: true\n"));
  EXPECT_FALSE(kept.contains("saved_in_fp32"));
  const Json turned = lora_of(
      job_of(std::string(start) + "finetuning_type: oft\noft_block_size: 64\noft_target: all\n"));
  EXPECT_EQ(turned.at("oft_block_size"), 64);
  EXPECT_EQ(turned.at("targets"), Json({"all-linear"}));
}

TEST(AdapterKeys, OfExpertsNameTheirWeights) {
  const Json lora = lora_of(job_of(R"(
base_model: qwen3-30b-a3b
adapter: lora
lora_target_modules: [q_proj]
lora_target_parameters: [experts.gate_up_proj]
bf16: true
datasets: [{path: a}]
)"));
  EXPECT_EQ(lora.at("target_parameters"), Json({"experts.gate_up_proj"}));
}

TEST(AdapterKeys, OfMsSwiftLeaveATowerToTrainWhole) {
  const Json job = job_of("tuner_type: lora_llm\nmodel: qwen2.5-vl-7b-instruct\n");
  EXPECT_EQ(job.at("workload").at("frozen"), "nothing");
  EXPECT_EQ(lora_of(job).at("train_whole").front(), "visual");
}

TEST(AdapterKeys, OfSmallerTunersAreThoseOfLoraThatKeepsMore) {
  const std::string model = "model: llama-3.1-8b\nlora_rank: 64\n";
  EXPECT_EQ(lora_of(job_of("tuner_type: adalora\nadalora_init_r: 6\n" + model)).at("rank"), 12);
  EXPECT_EQ(lora_of(job_of("tuner_type: bone\n" + model)).at("rank"), 4);
  EXPECT_NE(error_of("tuner_type: bone\ninit_weights: bat\n" + model), "");
  EXPECT_NE(error_of("tuner_type: boft\n" + model), "");
}

TEST(Sequences, OfMsSwiftArePaddedToTheRanksThatShareThem) {
  const Json job = job_of(
      "tuner_type: full\nmodel: llama-3.1-8b\nmax_length: 65535\nsequence_parallel_size: 4\n");
  EXPECT_EQ(job.at("workload").at("sequence_length"), 65536);
}

TEST(EightBits, OfAccelerateAreTransformerEnginesOrTorchaos) {
  const Json flags{{"cluster", "1xH100"}, {"model", "llama-3.1-8b"}};
  const Json engine =
      job_of("distributed_type: 'NO'\nmixed_precision: fp8\nfp8_config: {backend: TE}\n", flags);
  EXPECT_EQ(engine.at("precision"), Json({{"preset", "bf16-autocast"}, {"linear", "fp8-delayed"}}));
  const Json torchao =
      job_of("distributed_type: 'NO'\nmixed_precision: fp8\nfp8_config: {backend: AO}\n", flags);
  EXPECT_EQ(torchao.at("precision").at("linear"), "fp8-tensorwise");
  EXPECT_FALSE(torchao.at("framework").contains("float8_all_gather"));  // nothing is sharded
  const std::string error = error_of(
      "distributed_type: 'NO'\nmixed_precision: fp8\nfp8_config: {backend: MSAMP}\n", flags);
  EXPECT_NE(error.find("MS-AMP"), std::string::npos) << error;
}

// accelerate 1.15, AORecipeKwargs: weights are gathered in 8 bits unless told otherwise.
TEST(EightBits, AreGatheredUnderFsdp2) {
  const Json flags{{"cluster", "2xH100"}, {"model", "llama-3.1-8b"}};
  const std::string fsdp =
      "distributed_type: FSDP\nmixed_precision: fp8\nfsdp_config: {fsdp_version: 2";
  const auto gathers = [&](const std::string& more, const std::string& fp8) {
    return job_of(fsdp + more + "}\nfp8_config: {backend: AO" + fp8 + "}\n", flags)
        .at("framework")
        .value("float8_all_gather", "none");
  };
  EXPECT_EQ(gathers("", ""), "precomputed");
  EXPECT_EQ(gathers("", ", enable_fsdp_float8_all_gather: false"), "none");
  EXPECT_EQ(gathers(", fsdp_offload_params: true", ""), "none");
}

TEST(Quantization, AwareTrainingSaysWhyItIsRefused) {
  const char* file = R"(
base_model: llama-3.1-8b
bf16: true
qat: {weight_dtype: nvfp4, activation_dtype: nvfp4, group_size: 16}
datasets: [{path: a}]
)";
  const std::string error = error_of(file);
  EXPECT_NE(error.find("qat"), std::string::npos) << error;
  EXPECT_NE(error.find("NVFP4WeightOnlyConfig"), std::string::npos) << error;
}

TEST(Pages, OfStatesUnderZeroStayOnTheGpu) {
  const Imported imported = import_text(R"(
model_name_or_path: llama-3.1-8b
per_device_train_batch_size: 1
optim: paged_adamw_8bit
bf16: true
output_dir: a
deepspeed: {zero_optimization: {stage: 3}}
)");
  EXPECT_EQ(imported.job.at("optimizer").at("name"), "adamw_8bit");
  EXPECT_TRUE(noted(imported, Note::Kind::warning, "optimizer"));
}

TEST(Compiling, UnderFsdp2IsOfTheWholeModel) {
  const Json job = job_of(R"(
base_model: llama-3.1-8b
bf16: true
torch_compile: true
fsdp_version: 2
fsdp_config: {reshard_after_forward: true}
datasets: [{path: a}]
)");
  EXPECT_EQ(job.at("compile"), true);
}

TEST(LigerKernels, BesideExpertsArePyTorchsWithTheLossInParts) {
  const Imported imported = import_text(R"(
base_model: qwen3-30b-a3b
bf16: true
liger_glu_activation: true
liger_fused_linear_cross_entropy: true
datasets: [{path: a}]
)");
  EXPECT_FALSE(imported.job.contains("kernels"));
  EXPECT_EQ(imported.job.at("loss"), "fused_linear");
  EXPECT_TRUE(noted(imported, Note::Kind::warning, "Liger's kernels"));
}

TEST(LlamaFactory, PassesMegatronsArgumentsOn) {
  const Json job = job_of(R"(
stage: sft
template: qwen3
finetuning_type: full
model_name_or_path: qwen3-30b-a3b
cutoff_len: 4096
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
pipeline_model_parallel_size: 4
expert_model_parallel_size: 2
use_distributed_optimizer: true
)");
  EXPECT_EQ(job.at("framework").at("name"), "megatron");
  EXPECT_EQ(job.at("parallel").at("pipeline"), 4);
  EXPECT_EQ(job.at("workload").at("sequence_length"), 4096);
  EXPECT_EQ(job.at("workload").at("gradient_accumulation"), 8);
}

TEST(CatalogueNames, LeaveOutHowACheckpointIsStored) {
  const std::string file = "bf16: true\ndatasets: [{path: a}]\nbase_model: ";
  EXPECT_EQ(error_of(file + "EleutherAI/pythia-1.4b-deduped\n"), "");
  EXPECT_EQ(error_of(file + "nvidia/Llama-3.1-8B-Instruct-BF16\n"), "");
}

/// What looks for linear layers itself finds none among experts, whose weights transformers 5 has
/// joined; names that a file says are peft's to understand.
TEST(AdapterKeys, TrainersThatFindLinearsFindNoExperts) {
  const Json attention{"q_proj", "k_proj", "v_proj", "o_proj"};
  const auto axolotl = [](const std::string& model, const std::string& targets) {
    return lora_of(job_of("base_model: " + model + "\nadapter: lora\nlora_r: 8\nbf16: true\n" +
                          targets + "datasets: [{path: a}]\n"))
        .at("targets");
  };
  EXPECT_EQ(axolotl("qwen3-30b-a3b", "lora_target_linear: true\n"), attention);
  EXPECT_EQ(axolotl("qwen3-8b", "lora_target_linear: true\n"), Json{"all-linear"});
  EXPECT_EQ(axolotl("qwen3-30b-a3b", "lora_target_modules: [gate_proj, up_proj]\n"),
            Json({"gate_proj", "up_proj"}));
  EXPECT_EQ(lora_of(job_of("finetuning_type: lora\nstage: sft\ntemplate: qwen3\nlora_target: all\n"
                           "model_name_or_path: qwen3-30b-a3b\n"))
                .at("targets"),
            attention);
  EXPECT_EQ(lora_of(job_of("tuner_type: lora\nmodel: qwen3-30b-a3b\ntarget_modules: all-linear\n"))
                .at("targets"),
            attention);
}

}  // namespace
}  // namespace shardplan::importing::adapters_test
