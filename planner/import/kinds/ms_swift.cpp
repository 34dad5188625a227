// ms-swift's command lines and YAML (3602360a5, August 2026: swift/arguments, swift/trainers).
#include <fmt/format.h>

#include <array>

#include "import/fsdp.h"
#include "import/kinds/kind.h"
#include "import/kinds/ms_swift_keys.h"
#include "import/kinds/ms_swift_megatron.h"
#include "import/kinds/ms_swift_teacher.h"
#include "import/preference.h"
#include "import/training_keys.h"
#include "import/vocabulary.h"

namespace shardplan::importing::ms_swift {
namespace {

/// `megatron sft ...`, or a YAML for it.
bool runs_megatron(const Document& d) {
  if (d.is_command()) return d.program.starts_with("megatron ");
  return has_any(d, {"micro_batch_size", "tensor_model_parallel_size", "expert_model_parallel_size",
                     "recompute_granularity"});
}

/// `megatron sft a.yaml`: the file has all arguments.
bool names_its_arguments(const Document& d) {
  return d.is_command() && !d.words.empty() && d.value.size() == d.value.count("environment");
}

/// Groups of GPUs that Ray starts, each with options of its own.
bool has_groups(const Document& d) {
  return !d.is_command() && has_any(d, {"rlhf_type"}) && has_any(d, {"train.gpus"});
}

bool is_ms_swift(const Document& d) {
  if (d.program.starts_with("swift ")) {
    const std::string task = d.program.substr(6);
    return task == "sft" || task == "pt" || task == "rlhf";
  }
  if ((d.is_command() && runs_megatron(d)) || has_groups(d)) return true;
  return !d.is_command() && has_any(d, {"tuner_type", "train_type"}) && has_any(d, {"model"});
}

void read_bits(Key& key) {
  const std::int64_t bits = key.integer(1);
  const Json* method = key.other("quant_method");
  if (method != nullptr && *method == "hqq" && bits == 4) {
    quantize_base(key, "nf4");
    return key.warn("HQQ's groups of 64 take as many bits as nf4, in which the base is estimated");
  }
  if ((method != nullptr && *method != "bnb") || (bits != 4 && bits != 8))
    key.refuse(fmt::format("{} bits of such a method are not estimated", bits),
               "4 or 8 with quant_method bnb");
  const Json* twice = key.other("bnb_4bit_use_double_quant");
  const Json* kind = key.other("bnb_4bit_quant_type");
  const std::string base = kind != nullptr && *kind == "fp4" ? "fp4" : "nf4";
  const bool once = twice != nullptr && *twice == false;
  const std::string form = bits == 8 ? "int8" : once ? base : base + "_double";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

/// swift/config/zero*.json, which `--deepspeed zero2` stands for.
Json named_config(std::string_view name) {
  Json zero{{"stage", name[4] - '0'}};
  if (name.ends_with("_offload")) {
    zero["offload_optimizer"] = Json{{"device", "cpu"}, {"pin_memory", true}};
    if (name[4] == '3') zero["offload_param"] = Json{{"device", "cpu"}, {"pin_memory", true}};
  }
  if (name[4] == '3') {
    for (const char* key : {"reduce_bucket_size", "stage3_prefetch_bucket_size",
                            "stage3_param_persistence_threshold"})
      zero[key] = "auto";
    zero["stage3_max_live_parameters"] = zero["stage3_max_reuse_distance"] = 1e9;
    zero["sub_group_size"] = 1e9;
    zero["overlap_comm"] = false;
    zero["contiguous_gradients"] = true;
  } else {
    zero["allgather_bucket_size"] = zero["reduce_bucket_size"] = 2e8;
    zero["overlap_comm"] = false;
    zero["contiguous_gradients"] = true;
  }
  return Json{{"fp16", {{"enabled", "auto"}}},
              {"bf16", {{"enabled", "auto"}}},
              {"zero_optimization", zero},
              {"gradient_accumulation_steps", "auto"},
              {"gradient_clipping", "auto"},
              {"train_batch_size", "auto"},
              {"train_micro_batch_size_per_gpu", "auto"}};
}

void read_swift_deepspeed(Key& key) {
  if (key.value().is_string()) {
    const std::string name = key.text();
    for (const char* known : {"zero0", "zero1", "zero2", "zero3", "zero2_offload", "zero3_offload"})
      if (name == known) return attach_ds_config(key, named_config(name), "");
  }
  read_deepspeed(key);
}

void read_swift_fsdp(Key& key) {
  if (key.value() == "fsdp2") return read_fsdp_block(key, Json::object(), "", kTransformersFsdp);
  const std::string path = resolved_path(key.text(), key.document().file);
  if (path.empty()) key.refuse(fmt::format("no file '{}'", key.text()), "fsdp2, or a JSON file");
  const Json file = read_json_file(path);
  const Json* words = value_below(file, "fsdp");
  const Json* block = value_below(file, "fsdp_config");
  if (words == nullptr || !words->is_string() || block == nullptr || !block->is_object())
    key.refuse(fmt::format("'{}' has no fsdp and fsdp_config", path), "both, as ms-swift's own");
  const Json* offloads = value_below(*block, "activation_cpu_offload");
  if (offloads != nullptr && *offloads == true)
    key.warn("activations on the host are estimated as kept on the GPU, which is more");
  Json options = *block;
  options.erase("activation_cpu_offload");
  read_fsdp_block(key, options, words->get<std::string>(), kTransformersFsdp);
}

/// rlhf_trainers/args_mixin.py: 0.9 of the GPU.
void read_vllm(Key& key) {
  read_vllm_engine(key, {});
}

void read_divided(Key& key) {
  if (key.integer(1) == 1) return key.ignore("1: not divided");
  key.take("/parallel/sequence", key.integer(1));
}

/// sequence_parallel.py pads samples until all ranks of one have as many tokens.
void pad_sequences(Recipe& recipe) {
  const Json* ranks = recipe.find("/parallel/sequence");
  const Json* length = recipe.find("/workload/sequence_length");
  if (ranks == nullptr || length == nullptr) return;
  const auto over = ranks->get<std::int64_t>(), tokens = length->get<std::int64_t>();
  if (tokens % over == 0) return;
  const std::int64_t padded = (tokens / over + 1) * over;
  recipe.job["workload"]["sequence_length"] = padded;
  recipe.note({.kind = Note::Kind::assumed,
               .field = fmt::format("workload.sequence_length: {}", padded),
               .reason = fmt::format("samples are padded to a multiple of {} tokens", over)});
}

constexpr std::array kRules{
    KeyRule{"model", "", read_model},
    KeyRule{"tuner_type", "", read_tuner},
    KeyRule{"train_type", "", read_tuner},
    KeyRule{"lora_rank", "", read_rank},
    KeyRule{"target_modules", "", read_targets},
    KeyRule{"torch_dtype", "", read_weights_dtype},
    KeyRule{"max_length", "/workload/sequence_length", as_integer},
    KeyRule{"packing", "/workload/packing", as_flag},
    KeyRule{"padding_free", "", read_padding_free},
    KeyRule{"attn_impl", "", read_attention},
    KeyRule{"quant_bits", "", read_bits},
    KeyRule{"deepspeed", "", read_swift_deepspeed},
    KeyRule{"fsdp", "", read_swift_fsdp},
    KeyRule{"rlhf_type", "", read_algorithm},
    KeyRule{"max_completion_length", "", read_new_tokens},
    KeyRule{"teacher_model", "", read_teacher},
    KeyRule{"teacher_model_server", "", refuse_teacher_server},
    KeyRule{"teacher_deepspeed", "", read_teacher_deepspeed},
    KeyRule{"offload_teacher_model", "", read_teacher_offload},
    KeyRule{"gkd_logits_topk", "", read_top_logits},
    KeyRule{"use_vllm", "", read_vllm},
    KeyRule{"beta", "", read_beta},
    KeyRule{"precompute_ref_log_probs", "", read_precomputed},
    KeyRule{"sequence_parallel_size", "", read_divided},
    KeyRule{"modules_to_save", "", read_saved},
    KeyRule{"freeze_vit", "", read_frozen_tower},
    KeyRule{"freeze_aligner", "", read_frozen_projector},
    KeyRule{"freeze_llm", "", refuse_if_true},
    KeyRule{"use_galore", "", warn_if_larger},
    KeyRule{"optimizer_cpu_offload", "", warn_if_larger},
};

const KeyTable kOwn{kRules, ignored_keys()};

std::optional<std::int64_t> environment(const Document& d, const char* name) {
  const Json* value = value_below(d.value, std::string("environment.") + name);
  return value != nullptr && value->is_number_integer() ? std::optional(value->get<std::int64_t>())
                                                        : std::nullopt;
}

/// swift/cli: one process unless NPROC_PER_NODE asks for more.
void read_processes(const Document& d, Recipe& recipe) {
  if (const auto each = environment(d, "NPROC_PER_NODE")) recipe.per_machine = *each;
  if (const auto machines = environment(d, "NNODES")) recipe.machines = *machines;
}

void read(const Document& d, Recipe& recipe) {
  if (has_groups(d))
    Key(d, "train.gpus", *value_below(d.value, "train.gpus"), "", recipe)
        .refuse("groups of GPUs that Ray starts are not read",
                "the arguments of `megatron rlhf` without --use_ray");
  read_processes(d, recipe);
  if (names_its_arguments(d)) return;
  if (runs_megatron(d)) return read_megatron(d, recipe);
  read_keys(d, {&kOwn, &kTrainingKeys, &kLoraKeys}, recipe);
  if (!has_any(d, {"tuner_type", "train_type"})) {
    make_lora(recipe);
    recipe.note({.kind = Note::Kind::assumed,
                 .field = "workload.method: lora",
                 .reason = "ms-swift's default, tuner_type"});
  }
  if (!recipe.lora.is_null()) fill_lora(recipe);
  // model_args.py: computing in the type of the weights, the checkpoint's bf16 where nothing says.
  if (!recipe.bf16 && !recipe.fp16) {
    recipe.bf16 = recipe.weights.dtype.empty() || recipe.weights.dtype == "bf16";
    recipe.fp16 = recipe.weights.dtype == "fp16" || recipe.weights.dtype == "fp32";
    recipe.note({.kind = Note::Kind::assumed,
                 .field = recipe.bf16.value() ? "bf16" : "fp16",
                 .reason = "ms-swift computes in the type of the weights"});
  }
  if (recipe.weights.dtype.empty()) recipe.weights.dtype = "bf16";
  recipe.names_linears = true;
  recipe.set_default("/trainer", "hf_trainer");
  recipe.assume("/workload/micro_batch", 1, "ms-swift's default");
  if (recipe.find("/workload/gradient_accumulation") == nullptr)
    recipe.global_batch = 16;  // trainers/arguments.py: as many micro-batches as make 16
  recipe.assume("/checkpointing", "full", "ms-swift's default, gradient_checkpointing");
  settle_distillation(d, recipe);
  if (generates(recipe)) {
    const Json* length = recipe.find("/workload/sequence_length");
    recipe.rlhf["prompt_length"] = length == nullptr ? Json(2048) : *length;
    if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 512;
  } else if (!recipe.algorithm.empty()) {
    recipe.assume("/workload/sequence_length", 2048, "ms-swift's max_length, where it is not said");
  }
  freeze_by_default(recipe);
  pad_sequences(recipe);
  settle_reference(recipe, 0.04);  // arguments/rlhf_args.py
  training_defaults(recipe);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"ms_swift", "an ms-swift command", is_ms_swift, read};

}  // namespace shardplan::importing::ms_swift
