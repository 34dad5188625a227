#include "import/kinds/axolotl_keys.h"

#include <fmt/format.h>

#include <array>

#include "import/kinds/axolotl_divisions.h"
#include "import/kinds/axolotl_mesh.h"
#include "import/kinds/axolotl_offloading.h"
#include "import/kinds/axolotl_rewards.h"
#include "import/preference.h"
#include "import/vocabulary.h"

namespace shardplan::importing::axolotl {

namespace {

void read_adapter(Key& key) {
  const std::string name = key.text();
  if (name == "lora" || name == "qlora") {
    make_lora(key.recipe());
    return key.took("workload.method: lora");
  }
  key.refuse(fmt::format("the adapter '{}' is not estimated", name), "lora or qlora");
}

/// bnb_config of loaders/model.py: nf4 with a second quantization, unless bnb_config_kwargs says
/// otherwise.
void read_4bit(Key& key) {
  if (!key.flag()) return key.ignore("not in 4 bits");
  const Json* adapter = key.other("adapter");
  if (adapter == nullptr || adapter->is_null())
    key.refuse("4 bits without adapters cannot be trained", "adapter: qlora");
  const Json* twice = key.other("bnb_config_kwargs.bnb_4bit_use_double_quant");
  const std::string form = twice != nullptr && *twice == false ? "nf4" : "nf4_double";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

void read_target_linear(Key& key) {
  if (!key.flag()) return key.ignore("modules by name");
  make_lora(key.recipe());
  key.recipe().lora["targets"] = Json{"all-linear"};
  key.recipe().names_linears = true;
  key.took("workload.lora.targets: all-linear");
}

/// Attention by a flag of its own, from before attn_implementation.
void read_attention_flag(Key& key) {
  if (key.value().is_string() ? key.value() == "false" : !key.flag()) return key.ignore("off");
  if (key.path() == "flash_attention") return take_flash_attn(key);
  key.take("/attention", key.path() == "eager_attention" ? "eager" : "sdpa");
}

void read_plugins(Key& key) {
  for (const std::string& plugin : key.list()) {
    const std::string name = plugin.substr(plugin.rfind('.') + 1);
    const bool known = name == "LigerPlugin" || name == "CutCrossEntropyPlugin" ||
                       name == "SpectrumPlugin" || name == "KernelsPlugin";
    if (!known)
      key.recipe().note({.kind = Note::Kind::warning,
                         .file = key.origin().file,
                         .line = key.origin().line,
                         .key = key.path(),
                         .reason = name + " may change memory and time, and is not counted"});
    if (name == "CutCrossEntropyPlugin" && !key.other_is_true("cut_cross_entropy") &&
        key.other("cut_cross_entropy") == nullptr)
      key.recipe().set_default("/loss", "fused_linear");
  }
  key.took("plugins");
}

/// The loss without logits takes less than Liger's, which makes them in chunks.
void read_cut_loss(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.take("/loss", "fused_linear");
}

/// Kernels by name; finish.cpp leaves out those that Liger has not for the model's type.
void read_liger_kernel(Key& key) {
  if (!key.flag()) return key.ignore("off");
  const std::string& path = key.path();
  const std::string name = path == "liger_glu_activation" || path == "liger_swiglu"
                               ? "swiglu"
                               : path.substr(std::string_view("liger_").size());
  Json names =
      key.recipe().find("/kernels") == nullptr ? Json::array() : *key.recipe().find("/kernels");
  if (!names.is_array()) names = Json::array();
  names.push_back(name);
  key.take("/kernels", names);
}

/// GPTQ's 4 bits have a 16-bit scale and 4 bits of zero for a group, 128 weights as a rule; nf4
/// has an fp32 scale for 64.
void read_gptq(Key& key) {
  if (!key.flag()) return key.ignore("off");
  quantize_base(key, "nf4");
  key.warn("the base is estimated in nf4, which takes more than GPTQ's groups of 64 or more");
}

void read_unfrozen(Key& key) {
  if (key.value().empty()) return key.ignore("empty");
  key.warn("only some parameters are trained: the estimate is for all of them, which is more");
}

void read_unfrozen_layers(Key& key) {
  key.warn("a few layers are trained at a time: the estimate is for all of them, which is more");
}

/// monkeypatch/tiled_mlp: parts of 32,768 tokens unless told otherwise.
void read_tiles(Key& key) {
  constexpr std::int64_t kTokensOfPart = 32768, kUsualLength = 512;
  if (!key.flag()) return key.ignore("off");
  const auto said = [&](const char* name, std::int64_t otherwise) {
    const Json* value = key.other(name);
    return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : otherwise;
  };
  const std::int64_t parts = 1 + (said("sequence_len", kUsualLength) - 1) / kTokensOfPart;
  key.take("/mlp_tiles", said("tiled_mlp_num_shards", parts));
}

void read_tile_count(Key& key) {
  if (!key.other_is_true("tiled_mlp")) return key.ignore("tiled_mlp is off");
  key.took("mlp_tiles");
}

/// core/builders/base.py: accelerate's torchao backend, which has a scale for each tensor.
void read_fp8(Key& key) {
  if (!key.flag()) return key.ignore("off");
  take_fp8(key, "fp8-tensorwise", key.other_is_true("fp8_enable_fsdp_float8_all_gather"));
}

/// utils/quantization.py hands torchao a configuration of weights alone for nvfp4, which its
/// quantization-aware training has no fake quantizers for (0.17, 0.18: fake_quantize_config.py).
void read_qat(Key& key) {
  if (key.value().empty()) return key.ignore("empty");
  const Json* weights = key.other("qat.weight_dtype");
  if (weights != nullptr && *weights == "nvfp4")
    key.refuse("torchao 0.18 stops: \"Unexpected base config\", NVFP4WeightOnlyConfig",
               "weight_dtype int4, which torchao has");
  key.refuse("fake quantization keeps several copies of each weight, and is not estimated",
             "no qat block");
}

/// gpt-oss's own format is taken apart while it is loaded.
void read_quantized_loading(Key& key) {
  if (!key.other_is_true("model_quantization_config_kwargs.dequantize"))
    key.refuse("weights in the checkpoint's own format are not estimated",
               "model_quantization_config_kwargs.dequantize: true");
  key.ignore("taken apart to 16 bits while it is loaded");
}

/// monkeypatch/moe_quant.py: all experts of a layer in one tensor of few bits, widened when the
/// layer runs.
void read_quantized_experts(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn(
      "experts are estimated in 16 bits and take several times less memory in few: what does not "
      "fit here may fit");
}

void read_kernels(Key& key) {
  if (key.value() == false) return key.ignore("off");
  key.warn("kernels of its own: time and working memory differ a little from PyTorch's");
}

constexpr std::array kRules{
    KeyRule{"base_model", "", read_model},
    KeyRule{"base_model_config", "", read_model},
    KeyRule{"micro_batch_size", "/workload/micro_batch", as_integer},
    KeyRule{"gradient_accumulation_steps", "/workload/gradient_accumulation", as_integer},
    KeyRule{"sequence_len", "/workload/sequence_length", as_integer},
    KeyRule{"sample_packing", "/workload/packing", as_flag},
    KeyRule{"optimizer", "", read_optimizer},
    KeyRule{"adapter", "", read_adapter},
    KeyRule{"load_in_4bit", "", read_4bit},
    KeyRule{"load_in_8bit", "", read_load_in_8bit},
    KeyRule{"lora_target_linear", "", read_target_linear},
    KeyRule{"peft_use_rslora", "", read_rank_stabilized},
    KeyRule{"peft_use_dora", "", read_dora},
    KeyRule{"bfloat16", "", read_bf16},
    KeyRule{"float16", "", read_fp16},
    KeyRule{"fsdp", "", read_fsdp},
    KeyRule{"fsdp_config", "", read_fsdp_config},
    KeyRule{"fsdp_version", "", read_version},
    KeyRule{"attn_implementation", "", read_attention},
    KeyRule{"flash_attention", "", read_attention_flag},
    KeyRule{"sdp_attention", "", read_attention_flag},
    KeyRule{"xformers_attention", "", read_attention_flag},
    KeyRule{"flex_attention", "", read_attention_flag},
    KeyRule{"eager_attention", "", read_attention_flag},
    KeyRule{"plugins", "", read_plugins},
    KeyRule{"cut_cross_entropy", "", read_cut_loss},
    KeyRule{"liger_rope", "", read_liger_kernel},
    KeyRule{"liger_rms_norm", "", read_liger_kernel},
    KeyRule{"liger_layer_norm", "", read_liger_kernel},
    KeyRule{"liger_glu_activation", "", read_liger_kernel},
    KeyRule{"liger_swiglu", "", read_liger_kernel},
    KeyRule{"liger_cross_entropy", "", read_liger_kernel},
    KeyRule{"liger_fused_linear_cross_entropy", "", read_liger_kernel},
    KeyRule{"rl", "", read_rl},
    KeyRule{"reward_model", "", read_reward},
    KeyRule{"process_reward_model", "", read_step_rewards},
    KeyRule{"trl.max_completion_length", "", read_new_tokens},
    KeyRule{"trl.use_vllm", "", read_vllm},
    KeyRule{"trl.beta", "", read_beta},
    KeyRule{"rl_beta", "", read_beta},
    KeyRule{"precompute_ref_log_probs", "", read_precomputed},
    KeyRule{"dpo_use_logits_to_keep", "", warn_if_larger},
    KeyRule{"tensor_parallel_size", "/parallel/tensor", read_degree},
    KeyRule{"context_parallel_size", "", read_context_degree},
    KeyRule{"sequence_parallel_degree", "", read_context_degree},
    KeyRule{"dp_shard_size", "", read_shard_size},
    KeyRule{"dp_replicate_size", "", read_copies},
    KeyRule{"expert_parallel_size", "", read_expert_degree},
    KeyRule{"unfrozen_parameters", "", read_unfrozen},
    KeyRule{"activation_offloading", "", read_offloading},
    KeyRule{"gradient_checkpointing", "", read_blocks},
    KeyRule{"layer_offloading", "", refuse_if_true},
    KeyRule{"fp8", "", read_fp8},
    KeyRule{"qat", "", read_qat},
    KeyRule{"gptq", "", read_gptq},
    KeyRule{"relora", "", warn_if_true},
    KeyRule{"lisa_n_layers", "", read_unfrozen_layers},
    KeyRule{"model_quantization_config", "", read_quantized_loading},
    KeyRule{"diffusion", "", refuse_if_said},
    KeyRule{"lora_on_cpu", "", refuse_if_true},
    KeyRule{"tiled_mlp", "", read_tiles},
    KeyRule{"tiled_mlp_num_shards", "", read_tile_count},
    KeyRule{"quantize_moe_experts", "", read_quantized_experts},
    KeyRule{"lora_mlp_kernel", "", warn_if_true},
    KeyRule{"lora_qkv_kernel", "", warn_if_true},
    KeyRule{"lora_o_kernel", "", warn_if_true},
    KeyRule{"use_kernels", "", read_kernels},
    KeyRule{"llama4_linearized_experts", "", read_kernels},
    KeyRule{"use_scattermoe", "", read_kernels},
    KeyRule{"use_sonicmoe", "", read_kernels},
    KeyRule{"fused_attn_kernel", "", read_kernels},
    KeyRule{"gemma4_hybrid_attn_impl", "", read_kernels},
    KeyRule{"experts_implementation", "", read_kernels},
    KeyRule{"liger_rms_norm_gated", "", read_kernels},
    KeyRule{"use_glm_dsa_kernels", "", read_kernels},
    KeyRule{"use_dsv4_kernels", "", read_kernels},
};

}  // namespace

const KeyTable kKeys{kRules, ignored_keys()};

}  // namespace shardplan::importing::axolotl
