// What each kind of file becomes.
#include <gmock/gmock.h>

#include "import_testing.h"

namespace shardplan::importing {
namespace {

TEST(Axolotl, FullTrainingLoadsWeightsInTheComputingType) {
  const Imported imported = import_text(R"(
base_model: meta-llama/Llama-3.1-8B
sequence_len: 8192
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_torch_fused
bf16: auto
gradient_checkpointing: true
flash_attention: true
wandb_project: mine
datasets: [{path: a, type: alpaca}]
)");
  const Json& job = imported.job;
  EXPECT_EQ(job.at("model"), "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(job.at("framework").at("name"), "ddp");
  EXPECT_EQ(job.at("precision"), "bf16-pure");
  EXPECT_EQ(job.at("trainer"), "axolotl");
  EXPECT_EQ(job.at("workload").at("micro_batch"), 2);
  EXPECT_EQ(job.at("workload").at("packing"), true);
  EXPECT_EQ(job.at("checkpointing"), "full");
  EXPECT_EQ(job.at("optimizer"), Json({{"name", "adamw"}, {"implementation", "fused"}}));
  EXPECT_TRUE(noted(imported, Note::Kind::ignored, "wandb_project"));
}

TEST(TrainingArguments, LossesOfFineTuningAreNoPreference) {
  constexpr const char* kWithLoss =
      "per_device_train_batch_size: 2\noutput_dir: out\nmax_length: 512\nmodel: gpt2\nloss_type: ";
  for (const char* loss : {"nll", "dft"})
    EXPECT_FALSE(job_of(std::string(kWithLoss) + loss + "\n").at("workload").contains("algorithm"))
        << loss;
  EXPECT_EQ(job_of(std::string(kWithLoss) + "sigmoid\n").at("workload").at("algorithm"), "dpo");
}

TEST(Attention, OfThePackageFlashAttnIsItsOwnKernel) {
  constexpr const char* kAxolotl = "base_model: gpt2\nsequence_len: 512\nmicro_batch_size: 2\n";
  constexpr const char* kArguments =
      "per_device_train_batch_size: 2\noutput_dir: out\nmodel: gpt2\n";
  const auto kernel = [](const std::string& text) {
    return job_of(text).value("sdpa_kernel", "none");
  };
  for (const char* line : {"flash_attention: true\n", "attn_implementation: flash_attention_2\n"})
    EXPECT_EQ(kernel(std::string(kAxolotl) + line), "flash_attn") << line;
  EXPECT_EQ(kernel(std::string(kAxolotl) + "sdp_attention: true\n"), "none");
  for (const char* line : {"attn_implementation: flash_attention_2\n",
                           "attn_implementation: kernels-community/flash-attn2\n"})
    EXPECT_EQ(kernel(std::string(kArguments) + line), "flash_attn") << line;
  // FlashAttention-3 has not been timed.
  for (const char* line :
       {"attn_implementation: sdpa\n", "attn_implementation: flash_attention_3\n"})
    EXPECT_EQ(kernel(std::string(kArguments) + line), "none") << line;
}

TEST(TrainingArguments, CheckpointingHasTwoNames) {
  constexpr const char* kCheckpointed =
      "per_device_train_batch_size: 2\noutput_dir: out\nmodel: gpt2\nactivation_checkpointing: ";
  EXPECT_EQ(job_of(std::string(kCheckpointed) + "true\n").at("checkpointing"), "full");
  const std::string both = std::string(kCheckpointed) + "false\ngradient_checkpointing: true\n";
  EXPECT_EQ(job_of(both).at("checkpointing"), "full");
}

TEST(Axolotl, QloraHasASecondQuantizationAndNoPreparation) {
  const Json job = job_of(R"(
base_model: llama-3.1-8b
adapter: qlora
load_in_4bit: true
lora_r: 32
lora_target_linear: true
optimizer: paged_adamw_8bit
bf16: true
datasets: [{path: a}]
)");
  const Json& lora = job.at("workload").at("lora");
  EXPECT_EQ(lora.at("quantization"), "nf4_double");
  EXPECT_EQ(lora.at("rank"), 32);
  EXPECT_EQ(lora.at("targets"), Json({"all-linear"}));
  EXPECT_EQ(lora.at("prepare_kbit"), false);
  EXPECT_EQ(job.at("optimizer").at("name"), "paged_adamw_8bit");
  EXPECT_EQ(job.at("workload").at("sequence_length"), 512);
}

TEST(Axolotl, RanksWithoutAnAdapterSayNothing) {
  const Json job = job_of(R"(
base_model: llama-3.1-8b
lora_r: 32
adapter:
bf16: true
datasets: [{path: a}]
)");
  EXPECT_FALSE(job.at("workload").contains("lora"));
}

TEST(Axolotl, ExpressionsOverModulesAreTakenApart) {
  const Json job = job_of(R"(
base_model: llama-3.1-8b
adapter: lora
lora_target_modules: 'model.layers.[\d]+.(mlp|self_attn).(up|down|q)_proj'
bf16: true
datasets: [{path: a}]
)");
  EXPECT_EQ(job.at("workload").at("lora").at("targets"), Json({"up_proj", "down_proj", "q_proj"}));
}

TEST(LlamaFactory, DefaultsAreItsOwn) {
  const Json job = job_of(R"(
model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
finetuning_type: full
template: qwen
bf16: true
)");
  EXPECT_EQ(job.at("precision"), "bf16-autocast") << "what is trained becomes fp32";
  EXPECT_EQ(job.at("checkpointing"), "full");
  EXPECT_EQ(job.at("workload").at("micro_batch"), 8);
  EXPECT_EQ(job.at("workload").at("sequence_length"), 2048);
}

TEST(LlamaFactory, FreezesWhatIsBeforeATextModel) {
  const std::string file = R"(
stage: sft
finetuning_type: full
template: qwen2_vl
bf16: true
model_name_or_path: )";
  const Json usual = job_of(file + "Qwen/Qwen2.5-VL-7B-Instruct\n");
  EXPECT_EQ(usual.at("workload").at("frozen"), "tower_and_projector");
  const std::string thawed = "Qwen/Qwen2.5-VL-7B-Instruct\nfreeze_vision_tower: false\n";
  EXPECT_EQ(job_of(file + thawed).at("workload").at("frozen"), "nothing");
  EXPECT_FALSE(job_of(file + "Qwen/Qwen2.5-7B\n").at("workload").contains("frozen"));
}

TEST(LlamaFactory, ItsSecondVersionTrainsFp32Shards) {
  const Json job = job_of(R"(
model: qwen2.5-0.5b
model_class: llm
dist_config: {name: fsdp2}
train_dataset: a.yaml
micro_batch_size: 2
)");
  EXPECT_EQ(job.at("framework"), Json({{"name", "fsdp2"}, {"reduce_dtype", "fp32"}}));
  EXPECT_EQ(job.at("precision"), "bf16-autocast");
  EXPECT_EQ(job.at("checkpointing"), "full");
  EXPECT_EQ(job.at("optimizer").at("implementation"), "foreach");
}

TEST(LlamaFactory, PureBf16StaysSo) {
  const Json job = job_of(
      "model_name_or_path: qwen2.5-7b\nfinetuning_type: full\ntemplate: qwen\npure_bf16: true\n");
  EXPECT_EQ(job.at("precision"), "bf16-pure");
}

TEST(TrainingArguments, HfTrainerAutocastsOverFp32Weights) {
  const Json job = job_of(R"({"model_name_or_path": "gpt2", "per_device_train_batch_size": 4,
      "output_dir": "out", "bf16": true, "optim": "adamw_torch"})");
  EXPECT_EQ(job.at("trainer"), "hf_trainer");
  EXPECT_EQ(job.at("precision"), "bf16-autocast");
  EXPECT_EQ(job.at("optimizer").at("implementation"), "foreach");
}

TEST(TrainingArguments, TrlHasItsOwnDefaults) {
  const Json job = job_of(R"(
model_name_or_path: gpt2
dtype: bfloat16
per_device_train_batch_size: 2
packing: true
)");
  EXPECT_EQ(job.at("trainer"), "trl");
  EXPECT_EQ(job.at("precision"), "bf16-pure");
  EXPECT_EQ(job.at("checkpointing"), "full");
  EXPECT_EQ(job.at("workload").at("sequence_length"), 1024);
}

TEST(TrainingArguments, SmallerOptimizersAreEstimatedAsAdamW) {
  const Imported imported =
      import_text("model_name_or_path: gpt2\nper_device_train_batch_size: 1\noptim: rmsprop\n");
  EXPECT_EQ(imported.job.at("optimizer").at("name"), "adamw");
  EXPECT_TRUE(noted(imported, Note::Kind::warning, "optim"));
}

TEST(Accelerate, FsdpOneAndTwoAreWhatTheyAre) {
  const char* one = R"(
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_processes: 8
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_offload_params: true
  fsdp_backward_prefetch: BACKWARD_PRE
)";
  const Json flags{{"cluster", "8xH100"}, {"model", "gpt2"}};
  const Json first = job_of(one, flags).at("framework");
  EXPECT_EQ(first, Json({{"name", "fsdp1"},
                         {"sharding_strategy", "shard_grad_op"},
                         {"use_orig_params", true},
                         {"backward_prefetch", "pre"},
                         {"cpu_offload", true}}));
  const char* two = R"(
distributed_type: FSDP
mixed_precision: bf16
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: false
  fsdp_activation_checkpointing: true
)";
  const Json second = job_of(two, flags);
  EXPECT_EQ(second.at("framework"), Json({{"name", "fsdp2"}, {"reshard_after_forward", false}}));
  EXPECT_EQ(second.at("checkpointing"), "full");
  EXPECT_EQ(second.at("precision"), "bf16-autocast");
}

TEST(Accelerate, TheWholeModelIsOneUnitWithoutAPolicy) {
  const Json flags{{"cluster", "8xH100"}, {"model", "gpt2"}};
  const Json job = job_of("distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n", flags);
  EXPECT_EQ(job.at("framework").at("units"), "whole");
  const std::string error =
      error_of("distributed_type: FSDP\nfsdp_config: {fsdp_version: 1}\n", flags);
  EXPECT_NE(error.find("fsdp_auto_wrap_policy"), std::string::npos) << error;
  EXPECT_NE(error.find("TRANSFORMER_BASED_WRAP"), std::string::npos) << error;
}

TEST(Torchtitan, FlavorsAreNetworks) {
  const Json job = job_of(R"(
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 8192
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
)");
  EXPECT_EQ(job.at("model").at("intermediate_size"), 14336);
  EXPECT_EQ(job.at("framework").at("name"), "fsdp2");
  EXPECT_EQ(job.at("framework").at("reduce_dtype"), "fp32");
  EXPECT_EQ(job.at("checkpointing"), Json({{"policy", "selective_op"}, {"every", 2}}));
  EXPECT_EQ(job.at("precision"), "bf16-autocast");
}

constexpr std::string_view kScript = R"(#!/bin/bash
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"2"}
LAUNCH=(
  --nproc_per_node $GPUS_PER_NODE   # of a node
  --nnodes $NNODES
)
MODEL_ARGS="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --ffn-hidden-size 14336 \
  --normalization RMSNorm --swiglu --position-embedding-type rope \
  --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 \
  --attention-dropout 0"
TRAIN=(--micro-batch-size 1 --global-batch-size 128 --seq-length 4096 --bf16
       --tokenizer-type Llama2Tokenizer)
torchrun ${LAUNCH[@]} pretrain_gpt.py $MODEL_ARGS "${TRAIN[@]}" \
  --tensor-model-parallel-size $(($GPUS_PER_NODE / 2)) --sequence-parallel \
  --recompute-granularity full --recompute-method block --recompute-num-layers 4 \
  --use-distributed-optimizer
)";

TEST(Megatron, ScriptsAreReadWithTheirVariables) {
  const Imported imported = import_text(kScript, {{"cluster", "H100-80GB"}});
  const Json& job = imported.job;
  EXPECT_EQ(job.at("cluster"), "2x8xH100-80GB");
  EXPECT_EQ(job.at("model").at("model_type"), "llama");
  EXPECT_EQ(job.at("model").at("num_key_value_heads"), 8);
  EXPECT_EQ(job.at("parallel").at("tensor"), 4);
  EXPECT_EQ(job.at("workload").at("gradient_accumulation"), 32) << "128 over 16 / 4 ranks";
  EXPECT_EQ(job.at("framework").at("distributed_optimizer"), true);
  EXPECT_EQ(job.at("checkpointing"), Json({{"policy", "blocks"}, {"count", 4}}));
  EXPECT_EQ(job.at("precision"), "bf16-master");
}

TEST(Megatron, ArgumentsInYamlAreTheSame) {
  const Json job = job_of(R"(
MODEL_ARGS:
  --num-layers: 12
  --hidden-size: 512
  --num-attention-heads: 8
  --micro-batch-size: 4
  --global-batch-size: 32
  --seq-length: 1024
  --vocab-size: 50257
  --bf16: true
)");
  EXPECT_EQ(job.at("model").at("model_type"), "gpt2");
  EXPECT_EQ(job.at("workload").at("micro_batch"), 4);
}

constexpr const char* kSmallGpt = R"(
MODEL_ARGS:
  --num-layers: 8
  --hidden-size: 512
  --num-attention-heads: 8
  --micro-batch-size: 4
  --global-batch-size: 32
  --seq-length: 1024
  --max-position-embeddings: 1024
  --vocab-size: 50257
  --bf16: true
)";

TEST(Megatron, TokenizersTellTheVocabulary) {
  const auto words = [](const std::string& tokenizer) {
    std::string text = kSmallGpt;
    const std::string said = "  --vocab-size: 50257\n";
    text.replace(text.find(said), said.size(), tokenizer);
    return job_of(text).at("model").at("vocab_size");
  };
  EXPECT_EQ(words("  --tokenizer-type: TikTokenizer\n  --tokenizer-model: a.json\n"), 131072);
  EXPECT_EQ(words("  --tokenizer-type: GPTSentencePieceTokenizer\n"
                  "  --tokenizer-model: ${DATA}/utils/nemotron_2_256k.model\n"),
            256000);
}

TEST(Megatron, StatesElsewhereAreEstimatedOnTheGpu) {
  const Imported imported =
      import_text(std::string(kSmallGpt) + "  --optimizer-cpu-offload: true\n");
  EXPECT_TRUE(noted(imported, Note::Kind::warning, "optimizer_cpu_offload"));
}

TEST(Megatron, SequenceParallelismIsOffUnlessAskedFor) {
  const std::string divided = std::string(kSmallGpt) + "  --tensor-model-parallel-size: 2\n";
  EXPECT_EQ(job_of(divided).at("parallel").at("sequence_parallel"), false);
  EXPECT_EQ(
      job_of(divided + "  --sequence-parallel: true\n").at("parallel").at("sequence_parallel"),
      true);
}

TEST(Megatron, NetworksThatTransformersHasNotAreMegatronsOwn) {
  const Json model =
      job_of(
          std::string(kSmallGpt) +
          "  --num-experts: 8\n  --disable-bias-linear: true\n  --moe-layer-freq: ([0]*1+[1]*7)\n")
          .at("model");
  EXPECT_EQ(model.at("model_type"), "megatron_gpt");
  EXPECT_EQ(model.at("num_experts"), 8);
  EXPECT_EQ(model.at("first_k_dense_replace"), 1);
  EXPECT_EQ(model.at("gated_linear_unit"), false);
  EXPECT_EQ(model.at("hidden_dropout"), 0.1) << "Megatron-LM's own default";
}

TEST(Megatron, StagesOfDifferentSizesAreRead) {
  const std::string staged = std::string(kSmallGpt) + "  --pipeline-model-parallel-size: 4\n";
  const Json ends = job_of(staged +
                           "  --decoder-first-pipeline-num-layers: 1\n"
                           "  --decoder-last-pipeline-num-layers: 1\n");
  EXPECT_EQ(ends.at("parallel").at("stage_layers"), Json({1, 3, 3, 1}));
  const Json layout = job_of(staged + "  --pipeline-model-parallel-layout: Et|(tt|)*2t*3L\n");
  EXPECT_EQ(layout.at("parallel").at("stage_layers"), Json({1, 2, 2, 3}));
  const Json predicts = job_of(staged + "  --pipeline-model-parallel-layout: Et|(tt|)*2t*3mL\n");
  EXPECT_EQ(predicts.at("parallel").at("stage_layers"), Json({1, 2, 2, 3}));
  EXPECT_NE(error_of(staged + "  --pipeline-model-parallel-layout: Etm|(tt|)*2t*3L\n")
                .find("multi-token prediction"),
            std::string::npos);
  EXPECT_NE(error_of(staged + "  --decoder-first-pipeline-num-layers: 3\n").find("3 stages"),
            std::string::npos);
}

TEST(Megatron, OtherProgramsAreRefusedByTheirArguments) {
  for (const char* line :
       {"--num-tokens-to-generate: 64", "--perform-rl-step: true", "--img-h: 336",
        "--export-kd-teacher-load: teacher", "--window-size: 128"})
    EXPECT_NE(error_of(std::string(kSmallGpt) + "  " + line + "\n"), "") << line;
}

TEST(MsSwift, CommandsAreRead) {
  const Json job = job_of(R"(
NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B --tuner_type lora --lora_rank 8 \
  --torch_dtype bfloat16 --quant_bits 4 --quant_method bnb --deepspeed zero2 --max_length 2048
)");
  EXPECT_EQ(job.at("framework").at("ds_config").at("zero_optimization").at("stage"), 2);
  EXPECT_EQ(job.at("workload").at("lora").at("quantization"), "nf4_double");
  EXPECT_EQ(job.at("workload").at("gradient_accumulation"), 2) << "16 over 8 GPUs of one each";
}

TEST(Nemo, CoreAndAutomodelAreRead) {
  const Json core = job_of(R"(
run: {name: a}
trainer: {num_nodes: 1, devices: 8, precision: bf16, gradient_clip_val: 1.0}
model:
  micro_batch_size: 1
  global_batch_size: 64
  tensor_model_parallel_size: 2
  encoder_seq_length: 2048
  num_layers: 24
  hidden_size: 2048
  num_attention_heads: 16
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  tokenizer: {library: megatron, type: GPT2BPETokenizer}
  optim: {name: distributed_fused_adam}
)");
  EXPECT_EQ(core.at("framework").at("name"), "megatron");
  EXPECT_EQ(core.at("workload").at("gradient_accumulation"), 16);
  const Json recipe = job_of(R"(
step_scheduler: {global_batch_size: 64, local_batch_size: 8}
model: {pretrained_model_name_or_path: gpt2, torch_dtype: bfloat16}
distributed: {strategy: fsdp2, activation_checkpointing: true}
optimizer: {_target_: torch.optim.Adam}
)");
  EXPECT_EQ(recipe.at("framework").at("name"), "fsdp2");
  EXPECT_EQ(recipe.at("precision"), "bf16-pure");
  // components/distributed/config.py: reduced in fp32, once a step.
  EXPECT_EQ(recipe.at("framework").at("reduce_dtype"), "fp32");
  EXPECT_EQ(recipe.at("framework").at("sync_each_batch"), false);
  EXPECT_EQ(recipe.at("framework").at("reshard_after_forward"), true);
}

Json automodel_framework(const std::string& more) {
  return job_of("step_scheduler: {global_batch_size: 64, local_batch_size: 8}\n" + more)
      .at("framework");
}

TEST(Axolotl, ItsExpertDegreeIsRefused) {
  const std::string text = "base_model: mixtral-8x7b\nmicro_batch_size: 1\nexpert_parallel_size: ";
  EXPECT_NE(error_of(text + "4\n").find("expert_parallel_size"), std::string::npos);
  EXPECT_EQ(error_of(text + "1\n").find("expert_parallel_size"), std::string::npos);
}

TEST(Nemo, ExpertsKeepParametersGathered) {
  const std::string model = "model: {pretrained_model_name_or_path: mixtral-8x7b}\n";
  EXPECT_EQ(automodel_framework(model + "distributed: {ep_size: 8}").at("reshard_after_forward"),
            false);
  EXPECT_EQ(
      automodel_framework(model + "distributed: {ep_size: 8, moe: {reshard_after_forward: true}}")
          .at("reshard_after_forward"),
      true);
  EXPECT_EQ(automodel_framework(model + "distributed: {defer_fsdp_grad_sync: false}")
                .at("sync_each_batch"),
            true);
}

TEST(Nemo, AutomodelsOtherWaysAreRefusedOrRead) {
  const std::string start = "step_scheduler: {local_batch_size: 8}\n";
  const std::string torch =
      "model: {pretrained_model_name_or_path: mixtral-8x7b, backend: {dispatcher: torch}}\n";
  EXPECT_EQ(automodel_framework(torch + "distributed: {ep_size: 8}").at("expert_dispatch"),
            "allgather");
  EXPECT_EQ(error_of(start + torch + "distributed: {ep_size: 1}"), "");
  EXPECT_NE(error_of(start + "model: {pretrained_model_name_or_path: gpt2}\n"
                             "distributed: {dp_replicate_size: 2}")
                .find("dp_replicate_size"),
            std::string::npos);
  const Json job = job_of(start +
                          "model: {pretrained_model_name_or_path: llama-2-7b}\n"
                          "peft: {dim: 8, target_modules: '*_proj'}\n"
                          "quantization: {load_in_4bit: true, bnb_4bit_quant_type: nf4, "
                          "bnb_4bit_use_double_quant: true}");
  EXPECT_EQ(job.at("workload").at("lora").at("quantization"), "nf4_double");
}

TEST(PeftAdapter, IsLora) {
  const Json job = job_of(
      R"({"peft_type": "LORA", "base_model_name_or_path": "gpt2", "r": 4,
          "target_modules": ["c_attn"], "use_rslora": true})");
  EXPECT_EQ(job.at("workload").at("lora"),
            Json({{"rank", 4}, {"targets", {"c_attn"}}, {"rank_stabilized", true}}));
}

TEST(Kinds, FilesThatNoneReadsAreToldByName) {
  EXPECT_THAT(error_of("checkpoint_dir: c\ntrain: {global_batch_size: 8, micro_batch_size: 1}\n"),
              testing::HasSubstr("LitGPT"));
  EXPECT_THAT(error_of("parallelism: {dp: 2, tp: 2}\ntokens: {micro_batch_size: 2}\n"),
              testing::HasSubstr("nanotron"));
  EXPECT_THAT(error_of(R"({"schema": "shardplan.job/1", "model": "gpt2", "cluster": "1xH100"})"),
              testing::HasSubstr("whole by itself"));
}

}  // namespace
}  // namespace shardplan::importing
