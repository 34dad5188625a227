// Megatron-LM's arguments (d98e8a64dd, August 2026: megatron/training/arguments.py and the
// dataclasses behind it): of a command, a shell script or YAML.
#include "import/kinds/megatron.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string>

#include "formats/product_recipe.h"
#include "import/keys.h"
#include "import/kinds/kind.h"
#include "import/kinds/megatron_ignored.h"
#include "import/kinds/megatron_network.h"
#include "import/kinds/megatron_stages.h"
#include "import/vocabulary.h"
#include "options/choices.h"

namespace shardplan::importing {
namespace megatron {
namespace {

/// "MODEL_ARGS: {--num-layers: 12}", as Megatron-LM's own tests are written; else as it is.
Document plain(const Document& d) {
  const auto block = d.value.find("MODEL_ARGS");
  if (block == d.value.end() || !block->is_object()) return d;
  Document made;
  made.file = d.file;
  made.value = Json::object();
  for (const auto& [flag, value] : block->items()) {
    std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    made.positions.add(name, d.positions.find("MODEL_ARGS." + flag));
    made.value[name] = value;
  }
  return made;
}

bool is_megatron(const Document& d) {
  if (d.program.starts_with("megatron ")) return false;  // ms-swift's
  if (has_any(d, {"MODEL_ARGS.--num-layers", "MODEL_ARGS.--micro-batch-size"})) return true;
  if (has_any(d, {"tensor_model_parallel_size"}) && has_any(d, {"micro_batch_size", "num_layers"}))
    return !has_any(d, {"model_name_or_path", "finetuning_type"});
  return has_all(d, {"num_layers", "hidden_size", "num_attention_heads"}) &&
         has_any(d, {"micro_batch_size", "seq_length", "global_batch_size"});
}

bool on(const Document& d, std::string_view key) {
  const Json* value = value_below(d.value, key);
  return value != nullptr && (*value == true || *value == "true" || *value == "True");
}

void read_global(Key& key) {
  key.recipe().global_batch = key.integer(1);
  key.took("workload.gradient_accumulation follows");
}

/// "0:384 200B:768 400B:1152": sequences of a step from so many tokens on. The last is the largest.
void read_batch_schedule(Key& key) {
  const std::vector<std::string> steps = key.list();  // of a command several words
  const std::string text = steps.empty() ? "" : steps.back();
  const std::size_t colon = text.rfind(':');
  std::int64_t batch = 0;
  if (colon != text.npos)
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), batch);
  if (batch < 1) key.refuse(fmt::format("found '{}'", text), "a schedule such as 0:384 200B:768");
  key.recipe().global_batch = batch;
  key.took("workload.gradient_accumulation of its last batch");
}

void read_16bit(Key& key) {
  if (!key.flag()) return key.ignore("off");
  const std::string preset = key.path() == "bf16" ? "bf16-master" : "fp16-master";
  const Json* fp8 = key.other("fp8_format");
  const bool linear = fp8 != nullptr && fp8->is_string() && !fp8->get<std::string>().empty();
  key.take(linear ? "/precision/preset" : "/precision", preset);
}

void read_degree(Key& key) {
  if (!key.value().is_number()) return key.ignore("null: not divided");
  const std::int64_t degree = key.integer(1);
  if (degree == 1) return key.ignore("1: not divided");
  key.take(degree);
}

/// Heads are exchanged in the first level, a ring goes over the second
/// (hierarchical_context_parallel_sizes; parallel_state.py, initialize_model_parallel).
void read_both_levels(Key& key) {
  const Json* sizes = key.other("hierarchical_context_parallel_sizes");
  std::istringstream words(sizes != nullptr && sizes->is_string() ? sizes->get<std::string>() : "");
  std::int64_t heads = 0, ring = 0;
  char bracket = ' ';
  if (words.peek() == '[') words >> bracket;
  if (!(words >> heads >> ring) || heads < 1 || ring < 1)
    key.refuse("cp-comm-type a2a+p2p wants hierarchical-context-parallel-sizes", "two numbers");
  if (heads > 1) key.take("/parallel/sequence", heads);
  if (ring > 1) key.take("/parallel/context", ring);
}

/// All-to-all of heads is Ulysses, a ring the rest (transformer_config.py, cp_comm_type).
void read_context(Key& key) {
  const std::int64_t degree = key.integer(1);
  if (degree == 1) return key.ignore("1: not divided");
  const Json* how = key.other("cp_comm_type");
  if (how != nullptr && *how == "a2a") return key.take("/parallel/sequence", degree);
  if (how != nullptr && *how == "a2a+p2p") return read_both_levels(key);
  key.take("/parallel/context", degree);
}

void taken_with_context(Key& key) {
  key.ignore("taken with context_parallel_size");
}

void read_virtual_layers(Key& key) {
  const Json* layers = key.other("num_layers");
  const Json* stages = key.other("pipeline_model_parallel_size");
  const std::int64_t each = key.integer(1);
  if (layers == nullptr || stages == nullptr || !layers->is_number_integer() ||
      !stages->is_number_integer() || stages->get<std::int64_t>() < 1 ||
      layers->get<std::int64_t>() % (stages->get<std::int64_t>() * each) != 0)
    key.refuse("does not divide the layers of a stage",
               "num-layers and pipeline-model-parallel-size beside it");
  const std::int64_t chunks = layers->get<std::int64_t>() / (stages->get<std::int64_t>() * each);
  if (chunks == 1) return key.ignore("one chunk a stage");
  key.take("/parallel/virtual_pipeline", chunks);
}

/// Whole layers one by one or the first of each stage; or the attention alone.
void read_granularity(Key& key) {
  const std::string how = key.text();
  if (how == "selective") return key.take("/checkpointing", "selective");
  if (how != "full") key.refuse(fmt::format("found '{}'", how), "full or selective");
  const Json* method = key.other("recompute_method");
  const Json* number = key.other("recompute_num_layers");
  const std::int64_t layers =
      number != nullptr && number->is_number_integer() ? number->get<std::int64_t>() : 1;
  if (method != nullptr && *method == "block")
    return key.take("/checkpointing", Json{{"policy", "blocks"}, {"count", layers}});
  key.take("/checkpointing", "full");
  if (layers > 1)
    key.warn(
        fmt::format("{} layers at a time keep fewer inputs and need the activations of {} "
                    "while they run again; one at a time is estimated",
                    layers, layers));
}

void read_modules(Key& key) {
  const std::vector<std::string> names = key.list();
  const bool usual = names == std::vector<std::string>{"core_attn"};
  if (usual) return key.ignore("what is estimated");
  key.warn("modules other than core_attn are recomputed too: the estimate, without them, is more");
}

void read_old_checkpointing(Key& key) {
  if (key.path() == "recompute_activations") {
    if (key.flag()) key.take("/checkpointing", "selective");
    if (!key.said()) key.ignore("off");
    return;
  }
  if (key.value().is_string() && (key.text() == "uniform" || key.text() == "block"))
    return key.take("/checkpointing", "full");
  key.take("/checkpointing", key.flag() ? "full" : "none");
}

void read_optimizer_name(Key& key) {
  const std::string name = key.text();
  if (name == "adam" || name == "adamw" || name == "sgd")
    return key.take("/optimizer/name", name == "adam" ? "adamw" : name);
  // dist_muon is an old name of muon beside --use-distributed-optimizer.
  if (name == "muon" || name == "dist_muon") return key.take("/optimizer", Json{{"name", "muon"}});
  key.refuse(fmt::format("the optimizer '{}' is not read", name), "adam, sgd or muon");
}

void read_backend(Key& key) {
  const std::string name = key.text();
  const bool unfused = name == "unfused" || name == "AttnBackend.unfused" || name == "local";
  if (name == "flash" || name == "AttnBackend.flash") return take_flash_attn(key);
  key.take("/attention", unfused ? "eager" : "sdpa");
}

void read_implementation(Key& key) {
  const std::string name = key.text();
  if (name != "local" && name != "transformer_engine")
    key.refuse(fmt::format("'{}' is not estimated", name), "local or transformer_engine");
  key.took("framework.transformer_impl");
  // Its layers have dot_product_attention.py, which keeps scores (gpt_layer_specs.py).
  if (name == "local" && !key.other_is_true("use_flash_attn")) key.take("/attention", "eager");
}

void read_fp8(Key& key) {
  if (key.value() == "" || key.value() == false || key.value() == "none") return key.ignore("off");
  const Json* recipe = key.other("fp8_recipe");
  const std::string name =
      recipe != nullptr && recipe->is_string() ? recipe->get<std::string>() : "delayed";
  const auto found =
      std::ranges::find(kProductRecipes, std::string_view(name), &ProductRecipe::megatron);
  if (name.empty() || found == kProductRecipes.end())
    key.refuse(fmt::format("the recipe '{}' is not estimated", name),
               "delayed, tensorwise or blockwise");
  key.take("/precision/linear", std::string(found->name));
}

/// Stages with fewer layers where embeddings and head are; estimated where both are asked for.
void read_balance(Key& key) {
  if (!key.flag()) return key.ignore("off");
  if (key.other_is_true("account_for_embedding_in_pipeline_split") &&
      key.other_is_true("account_for_loss_in_pipeline_split"))
    return key.take("/parallel/balance", "blocks_and_ends");
  key.refuse("one end of the pipeline without the other is not estimated",
             "both --account-for-embedding-in-pipeline-split and -loss-in-pipeline-split");
}

/// Arguments of programs that do something else than train a language model on tokens.
void generates(Key& key) {
  key.refuse("these arguments generate text, and train nothing", "a training script's arguments");
}
void learns_by_reinforcement(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.refuse("reinforcement learning of Megatron-LM is not estimated", "pre-training arguments");
}
void reads_images(Key& key) {
  key.refuse("a network with a tower for images is not read from arguments",
             "a language model's arguments");
}
void has_teacher(Key& key) {
  key.refuse("a teacher beside the model is not estimated", "arguments without it");
}

void runs_deepspeed(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.refuse("DeepSpeed's engine runs this step (Megatron-DeepSpeed), which is not estimated",
             "Megatron-LM's own arguments; or `shardplan fit MODEL CLUSTER --ds-config FILE`");
}
void converts(Key& key) {
  key.refuse("these arguments convert a checkpoint, and train nothing",
             "a training script's arguments");
}

/// core/pipeline_parallel/fine_grained_activation_offload.py: what autograd keeps in the modules
/// named goes to the host between the passes. Experts' modules, and a part of all, are not
/// estimated.
Json sent_modules(const Document& d) {
  const Json* named = value_below(d.value, "offload_modules");
  const Json* fraction = value_below(d.value, "activation_offload_fraction");
  const bool whole = fraction == nullptr || (fraction->is_number() && *fraction == 1.0);
  if (!on(d, "fine_grained_activation_offloading") || named == nullptr || !whole ||
      value_below(d.value, "delta_offload_bytes_across_pp_ranks") != nullptr)
    return {};
  const Json all = named->is_array() ? *named : Json::array({*named});
  for (const Json& module : all)
    if (!module.is_string() || find_choice(kSentModules, module.get<std::string>()) == nullptr)
      return {};
  return all;
}

void read_sent_inputs(Key& key) {
  if (key.value() == false) return key.ignore("off");
  if (!sent_modules(key.document()).is_null()) return key.took("framework");
  key.warn(
      "what modules keep is estimated as staying on the GPU, which is more there and less on the "
      "host: the estimate knows attn_norm, qkv_linear, core_attn, attn_proj and mlp_norm, whole");
}

/// A share of the states on the host (core/optimizer/cpu_offloading), or in fewer bits.
void read_states_elsewhere(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn(key.path() == "optimizer_cpu_offload"
               ? "states on the host are estimated on the GPU: more there, and less on the host"
               : "states in fewer bits are estimated in fp32, which is more");
}

void taken_elsewhere(Key& key) {
  key.took("framework");
}

constexpr std::array kRules{
    KeyRule{"micro_batch_size", "/workload/micro_batch", as_integer},
    KeyRule{"global_batch_size", "", read_global},
    KeyRule{"step_batch_size_schedule", "", read_batch_schedule},
    KeyRule{"spec", "", taken_elsewhere},
    KeyRule{"seq_length", "/workload/sequence_length", as_integer},
    KeyRule{"bf16", "", read_16bit},
    KeyRule{"fp16", "", read_16bit},
    KeyRule{"clip_grad", "/gradient_clipping", as_number},
    KeyRule{"optimizer", "", read_optimizer_name},
    KeyRule{"tensor_model_parallel_size", "/parallel/tensor", read_degree},
    KeyRule{"pipeline_model_parallel_size", "/parallel/pipeline", read_degree},
    KeyRule{"num_virtual_stages_per_pipeline_rank", "/parallel/virtual_pipeline", read_degree},
    KeyRule{"num_layers_per_virtual_pipeline_stage", "", read_virtual_layers},
    KeyRule{"context_parallel_size", "", read_context},
    KeyRule{"cp_comm_type", "", taken_with_context},
    KeyRule{"hierarchical_context_parallel_sizes", "", taken_with_context},
    KeyRule{"expert_model_parallel_size", "/parallel/expert", read_degree},
    KeyRule{"expert_tensor_parallel_size", "/parallel/expert_tensor", as_integer},
    KeyRule{"sequence_parallel", "/parallel/sequence_parallel", as_flag},
    KeyRule{"recompute_granularity", "", read_granularity},
    KeyRule{"recompute_modules", "", read_modules},
    KeyRule{"recompute_activations", "", read_old_checkpointing},
    KeyRule{"activations_checkpoint_method", "", read_old_checkpointing},
    KeyRule{"checkpoint_activations", "", read_old_checkpointing},
    KeyRule{"attention_backend", "", read_backend},
    KeyRule{"transformer_impl", "", read_implementation},
    KeyRule{"fp8_format", "", read_fp8},
    KeyRule{"use_distributed_optimizer", "", taken_elsewhere},
    KeyRule{"overlap_grad_reduce", "", taken_elsewhere},
    KeyRule{"overlap_param_gather", "", taken_elsewhere},
    KeyRule{"grad_reduce_in_bf16", "", taken_elsewhere},
    KeyRule{"accumulate_allreduce_grads_in_fp32", "", taken_elsewhere},
    KeyRule{"no_gradient_accumulation_fusion", "", taken_elsewhere},
    KeyRule{"cross_entropy_loss_fusion", "", taken_elsewhere},
    KeyRule{"cross_entropy_fusion_impl", "", taken_elsewhere},
    KeyRule{"ddp_bucket_size", "", taken_elsewhere},
    KeyRule{"ddp_pad_buckets_for_high_nccl_busbw", "", taken_elsewhere},
    KeyRule{"tp_comm_overlap", "", taken_elsewhere},
    KeyRule{"distribute_saved_activations", "", taken_elsewhere},
    KeyRule{"use_megatron_fsdp", "", taken_elsewhere},
    KeyRule{"data_parallel_sharding_strategy", "", taken_elsewhere},
    KeyRule{"account_for_embedding_in_pipeline_split", "", read_balance},
    KeyRule{"account_for_loss_in_pipeline_split", "", read_balance},
    KeyRule{"num_tokens_to_generate", "", generates},
    KeyRule{"prompts", "", generates},
    KeyRule{"prompt_file", "", generates},
    KeyRule{"text_generate_output_file", "", generates},
    KeyRule{"deepspeed", "", runs_deepspeed},
    KeyRule{"target_tensor_model_parallel_size", "", converts},
    KeyRule{"num_layers_teacher", "", has_teacher},
    KeyRule{"perform_rl_step", "", learns_by_reinforcement},
    KeyRule{"img_h", "", reads_images},
    KeyRule{"vision_model_type", "", reads_images},
    KeyRule{"export_kd_teacher_load", "", has_teacher},
    KeyRule{"num_distributed_optimizer_instances", "", taken_elsewhere},
    KeyRule{"use_torch_fsdp2", "", refuse_if_true},
    KeyRule{"optimizer_cpu_offload", "", read_states_elsewhere},
    KeyRule{"cpu_offloading", "", refuse_if_true},
    KeyRule{"fine_grained_activation_offloading", "", read_sent_inputs},
    KeyRule{"offload_modules", "", read_sent_inputs},
    KeyRule{"min_offloaded_tensor_size", "", read_sent_inputs},
    KeyRule{"activation_offload_fraction", "", read_sent_inputs},
    KeyRule{"delta_offload_bytes_across_pp_ranks", "", read_sent_inputs},
    KeyRule{"use_precision_aware_optimizer", "", read_states_elsewhere},
    KeyRule{"pipeline_model_parallel_layout", "", read_stage_layout},
    KeyRule{"decoder_first_pipeline_num_layers", "", read_end_stages},
    KeyRule{"decoder_last_pipeline_num_layers", "", read_end_stages},
    KeyRule{"mtp_num_layers", "", taken_elsewhere},
    KeyRule{"moe_layer_recompute", "", warn_if_true},
    KeyRule{"fp8_param_gather", "", warn_if_true},
    KeyRule{"moe_shared_expert_overlap", "", warn_if_true},
};

const KeyTable kOwn{kRules, megatron_ignored_keys()};

/// What arguments.py makes of switches: gradients of 16-bit training are reduced in fp32 unless
/// told otherwise; the distributed optimizer and overlapping are off.
Json framework_of(const Document& d) {
  Json f{{"name", "megatron"}};
  const Json* optimizer = value_below(d.value, "optimizer");
  f["distributed_optimizer"] = on(d, "use_distributed_optimizer") || on(d, "use_megatron_fsdp") ||
                               (optimizer != nullptr && *optimizer == "dist_muon");
  f["overlap_grad_reduce"] = on(d, "overlap_grad_reduce");
  f["overlap_param_gather"] = on(d, "overlap_param_gather");
  if (on(d, "grad_reduce_in_bf16")) f["grad_reduce_dtype"] = "bf16";
  if (on(d, "no_gradient_accumulation_fusion")) f["gradient_accumulation_fusion"] = false;
  const Json* impl = value_below(d.value, "cross_entropy_fusion_impl");
  if (on(d, "cross_entropy_loss_fusion") && impl != nullptr && *impl == "te")
    f["cross_entropy_fusion"] = true;
  if (const Json* bucket = value_below(d.value, "ddp_bucket_size");
      bucket != nullptr && bucket->is_number_integer())
    f["bucket_size"] = *bucket;
  if (const Json* instances = value_below(d.value, "num_distributed_optimizer_instances");
      instances != nullptr && instances->is_number_integer() && *instances > 1)
    f["distributed_optimizer_instances"] = *instances;
  if (on(d, "ddp_pad_buckets_for_high_nccl_busbw")) f["pad_buckets"] = true;
  const Json* layers = value_below(d.value, "transformer_impl");
  if (layers != nullptr && layers->is_string()) f["transformer_impl"] = *layers;
  if (const Json* spec = value_below(d.value, "spec"); spec != nullptr && *spec == "local")
    f["transformer_impl"] = "local";
  if (on(d, "tp_comm_overlap")) f["tp_comm_overlap"] = true;
  if (on(d, "distribute_saved_activations")) f["distribute_saved_activations"] = true;
  if (const Json modules = sent_modules(d); !modules.is_null()) {
    f["offload_modules"] = modules;
    if (const Json* least = value_below(d.value, "min_offloaded_tensor_size"))
      f["min_offloaded_tensor_size"] = *least;
  }
  if (const Json* further = value_below(d.value, "mtp_num_layers");
      further != nullptr && further->is_number_integer() && *further > 0)
    f["mtp_num_layers"] = *further;
  const Json* sharding = value_below(d.value, "data_parallel_sharding_strategy");
  if (sharding != nullptr && on(d, "use_megatron_fsdp")) {
    const bool parameters = *sharding == "optim_grads_params";
    if (parameters || *sharding == "optim_grads") f["shard_gradients"] = true;
    if (parameters) f["shard_parameters"] = true;
  }
  return f;
}

void read(const Document& original, Recipe& recipe) {
  const Document d = plain(original);
  if (!recipe.has_model && recipe.find("/model") == nullptr) {
    recipe.set("/model", megatron_network(d), {.file = d.file, .key = "num_layers"});
    recipe.note({.kind = Note::Kind::took,
                 .file = d.file,
                 .key = "network",
                 .field = "model: " + recipe.find("/model")->value("model_type", "")});
  }
  read_megatron_arguments(d, recipe);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"megatron", "Megatron-LM's arguments", is_megatron, read};

}  // namespace megatron

void read_megatron_arguments(const Document& d, Recipe& recipe, const KeyTable* others) {
  static constexpr KeyTable kNone{};
  read_keys(d, {&megatron::kOwn, others == nullptr ? &kNone : others}, recipe);
  recipe.set_default("/framework", megatron::framework_of(d));
  recipe.set_default("/workload/micro_batch", 1);
  recipe.set_default("/gradient_clipping", 1.0);
  const Json* precision = recipe.find("/precision");
  if (precision == nullptr)
    recipe.assume("/precision", "fp32", "neither bf16 nor fp16");
  else if (precision->is_object() && !precision->contains("preset"))
    recipe.set_default("/precision/preset",
                       megatron::on(d, "fp16") ? "fp16-master" : "bf16-master");
  recipe.set_default("/checkpointing", "none");
  // Off unless asked for; arguments.py turns it off where one rank has each layer.
  if (recipe.find("/parallel/tensor") != nullptr)
    recipe.set_default("/parallel/sequence_parallel", false);
  else if (recipe.find("/parallel/sequence_parallel") != nullptr)
    recipe.job["parallel"].erase("sequence_parallel");
  if (recipe.job.contains("parallel") && recipe.job["parallel"].empty())
    recipe.job.erase("parallel");
}

}  // namespace shardplan::importing
