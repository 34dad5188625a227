#include "import/finish.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "import/asked_gpus.h"
#include "import/vocabulary.h"
#include "job/fields.h"
#include "kernels/description.h"
#include "kernels/registry.h"
#include "load/catalog.h"
#include "load/cluster.h"
#include "load/hardware.h"
#include "load/model.h"
#include "lowering/rlhf/algorithms.h"
#include "model/architectures/registry.h"
#include "trainers/registry.h"

namespace shardplan::importing {
namespace {

std::string first_file(const Recipe& recipe) {
  return recipe.kinds.empty() ? "" : recipe.kinds.front().first;
}

class Finisher {
 public:
  Finisher(Recipe& recipe, const Json& flags) : recipe_(recipe), flags_(flags) {}

  Json finish() {
    take_model();
    take_cluster();
    take_framework();
    take_tested_optimizers();
    take_pages();
    take_lora();
    take_images();
    take_precision();
    gather_in_8_bits(recipe_, framework());
    take_batch();
    take_kernels();
    take_compile();
    take_algorithm();
    return recipe_.job;
  }

 private:
  const Json* said(const char* key) const {
    const auto flag = flags_.find(key);
    if (flag != flags_.end()) return &*flag;
    const auto own = recipe_.job.find(key);
    return own == recipe_.job.end() ? nullptr : &*own;
  }

  [[noreturn]] void ask(std::string key, std::string message, std::string expected,
                        std::string near = "") const {
    throw InputError({.file = first_file(recipe_),
                      .key = std::move(key),
                      .message = std::move(message),
                      .expected = std::move(expected),
                      .nearest = std::move(near)});
  }

  /// A name of a hub stands for a model of the catalogue, or for one that only its config.json
  /// tells.
  void take_model() {
    const Json* model = said("model");
    if (model == nullptr)
      ask("model", "which model is trained is not in the file", "--model NAME or its config.json");
    if (!model->is_string() || flags_.contains("model")) return;
    const auto& name = model->get_ref<const std::string&>();
    if (find_config(*model, {first_file(recipe_), "model", recipe_.directory})) return;
    const auto origin = recipe_.origins.find("/model");
    const Origin where = origin == recipe_.origins.end() ? Origin{} : origin->second;
    throw InputError(
        {.file = where.file.empty() ? first_file(recipe_) : where.file,
         .key = where.key,
         .message = fmt::format("'{}' is no model of the catalogue and no folder here", name),
         .expected =
             is_hub_name(name)
                 ? fmt::format("--model with its config.json (huggingface.co/{}/raw/main/"
                               "config.json), or with a name of `shardplan catalog models`",
                               name)
                 : "--model with its config.json, or with a name of `shardplan catalog models`",
         .nearest = nearest_model(name),
         .position = {where.line, where.line > 0 ? 1 : 0}});
  }

  void take_cluster() {
    const Json* cluster = said("cluster");
    const auto gpus = asked_gpus(recipe_);
    if (cluster == nullptr)
      ask("cluster",
          gpus ? fmt::format("the files ask for {} GPU{}, and do not say which", *gpus,
                             *gpus == 1 ? "" : "s")
               : std::string("which GPUs it runs on is not in the files"),
          fmt::format("--cluster {}xH100-80GB, or another one", gpus.value_or(8)));
    const Json whole = counted(*cluster, recipe_, hardware_);
    world_ = load_cluster(whole, "<command line>", "cluster", hardware_).world();
    if (gpus && *gpus != world_)
      recipe_.note(
          {.kind = Note::Kind::warning,
           .key = "cluster",
           .reason = fmt::format("the files ask for {} GPUs; {} are estimated", *gpus, world_)});
    recipe_.job["cluster"] = whole;
  }

  const TrainerDescription& trainer() const {
    const std::string name = recipe_.job.value("trainer", "");
    const auto known = std::ranges::find(trainers(), name, &TrainerDescription::name);
    return known == trainers().end() ? default_trainer() : **known;
  }

  std::string framework() const {
    const Json* value = said("framework");
    if (value == nullptr) return {};
    return value->is_string() ? value->get<std::string>() : value->value("name", "");
  }

  /// A shard group of all GPUs is none: front ends that do not know how many there are leave that
  /// to here.
  void drop_group_of_all() {
    Json& job = recipe_.job;
    if (!job.contains("framework") || !job.at("framework").is_object()) return;
    Json& framework = job.at("framework");
    if (framework.value("hybrid_shard_size", Json()) != Json(world_)) return;
    framework.erase("hybrid_shard_size");
    if (framework.value("sharding_strategy", "") == "hybrid_shard")
      framework.erase("sharding_strategy");
  }

  /// Processes that no file divides otherwise are DDP's; one alone is plain PyTorch.
  void take_framework() {
    drop_group_of_all();
    if (flags_.contains("framework")) return;
    const std::string name = framework();
    const bool alone = world_ == 1 || recipe_.one_process;
    if (recipe_.one_process && world_ > 1 && name.empty())
      ask("distributed_type", fmt::format("one process, and a cluster of {} GPUs", world_),
          "--cluster with one GPU, or distributed_type: MULTI_GPU");
    if (name.empty() || name == "ddp") {
      set_field(recipe_.job, "/framework", Json{{"name", alone ? "single" : "ddp"}});
      if (name.empty())
        recipe_.note({.kind = Note::Kind::assumed,
                      .field = fmt::format("framework: {}", alone ? "single" : "ddp"),
                      .reason = alone ? "one GPU" : "the files divide nothing: DDP on each GPU"});
    } else if (name == "fsdp2" && alone && recipe_.job.value("trainer", "") == "torchtitan") {
      set_field(recipe_.job, "/framework", Json{{"name", "single"}});
    }
  }

  /// What a trainer freezes before the text model, where the model has such parts.
  void take_images() {
    const Json* model = said("model");
    if ((!recipe_.frozen_tower && !recipe_.texts) || model == nullptr) return;
    const auto config = find_config(*model, {first_file(recipe_), "model", recipe_.directory});
    if (!config || !reads_images(config->config.value("model_type", ""))) return;
    if (recipe_.texts && recipe_.find("/workload/images") == nullptr && !flags_.contains("images"))
      recipe_.assume("/workload/images", 0, "the data are texts");
    if (!recipe_.frozen_tower) return;
    const bool projector = recipe_.frozen_projector.value_or(false);
    const char* frozen = !*recipe_.frozen_tower ? "nothing"
                         : projector            ? "tower_and_projector"
                                                : "tower";
    recipe_.assume("/workload/frozen", frozen, "what the trainer freezes of a model with images");
  }

  /// accelerate and transformers set it before DeepSpeed sees an optimizer of theirs
  /// (transformers 5.17, integrations/deepspeed.py, deepspeed_optim_sched).
  void take_tested_optimizers() {
    const Json* config = recipe_.find("/framework/ds_config");
    if (config == nullptr || !trainer().loads_divided) return;
    if (!config->contains("optimizer"))
      set_field(recipe_.job, "/framework/ds_config/zero_allow_untested_optimizer", true);
  }

  /// Pages of bitsandbytes' states under ZeRO are not estimated: all of them on the GPU take more.
  void take_pages() {
    const Json* optimizer = recipe_.find("/optimizer/name");
    if (framework() != "deepspeed" || optimizer == nullptr || flags_.contains("optimizer")) return;
    const std::string name = *optimizer;
    if (!name.starts_with("paged_")) return;
    set_field(recipe_.job, "/optimizer/name", name.substr(std::string_view("paged_").size()));
    recipe_.note({.kind = Note::Kind::warning,
                  .key = "optimizer",
                  .reason = "pages that may move to the host are estimated as if they stayed on "
                            "the GPU, which is more"});
  }

  /// Liger's kernels are estimated in a compiled model with rotation and fused loss among them,
  /// over weights that are not packed (core/compile/problems.cpp).
  bool compiles_kernels() const {
    const Json* kernels = recipe_.find("/kernels");
    if (kernels == nullptr || *kernels == "torch") return true;
    if (recipe_.lora.is_object() && recipe_.lora.contains("quantization")) return false;
    const auto has = [&](const char* name) {
      return *kernels == "liger" || std::ranges::find(*kernels, Json(name)) != kernels->end();
    };
    return has("rope") && has("fused_linear_cross_entropy");
  }

  void take_compile() {
    const Json* asked = recipe_.find("/compile");
    if (asked == nullptr || *asked == false) return;
    if (!compiles_kernels()) {
      recipe_.job.erase("compile");
      recipe_.note({.kind = Note::Kind::warning,
                    .key = "torch_compile",
                    .reason = "these kernels of Liger's are estimated in a model that is not "
                              "compiled, which keeps more as a rule"});
      return;
    }
  }

  /// FlatParamHandle takes floating types only, and one in a tensor (_validate_tensors_to_flatten).
  void refuse_storage() const {
    const std::string& type = recipe_.packed_in;
    if (framework() != "fsdp1" || !recipe_.lora.contains("quantization") || type.empty()) return;
    if (type == "bfloat16" || type == "float16") return;
    ask("bnb_4bit_quant_storage",
        fmt::format("'{}' beside parameters of 16 bits, which FSDP1 does not flatten together",
                    type),
        "the type that the model is loaded in");
  }

  void take_lora() {
    if (recipe_.lora.is_null()) return;
    // TRL leaves a model alone that shards on the CPU or has no data yet (is_sharded_qlora).
    if (framework() == "fsdp1" && recipe_.lora.contains("quantization") &&
        !recipe_.lora.contains("prepare_kbit"))
      recipe_.lora["prepare_kbit"] = false;
    refuse_storage();
    recipe_.lora.update(recipe_.beside_lora);
    set_field(recipe_.job, "/workload/method", "lora");
    set_field(recipe_.job, "/workload/lora", recipe_.lora);
  }

  /// What HF Trainer and what is built on it make of bf16 and fp16: DeepSpeed's engine keeps
  /// master weights; accelerate casts what FSDP trains to fp32 (utils/fsdp_utils.py,
  /// accelerator.py); else weights stay as they were loaded and the forward is under autocast.
  void take_precision() {
    if (recipe_.has_precision() || flags_.contains("precision")) return;
    const bool bf16 = recipe_.bf16.value_or(false);
    const std::string half = bf16 ? "bf16" : recipe_.fp16.value_or(false) ? "fp16" : "";
    const std::string name = framework();
    if (name == "deepspeed") return under_deepspeed(half);
    const Weights& w = recipe_.weights;
    const bool lora = !recipe_.lora.is_null();
    const bool half_shards = name == "fsdp2" && w.dtype == half && (w.kept_in_shards || lora);
    const bool shards = name.starts_with("fsdp") && !half_shards;
    if (half.empty()) {
      const bool kept = w.dtype == "bf16" || w.dtype == "fp16";
      set_precision(kept ? w.dtype + "-pure" : "fp32",
                    kept ? "weights as loaded" : "no bf16 or fp16");
    } else if (name == "fsdp1" && lora && freezes_in(half)) {
      set_precision(half + "-pure", "the frozen model in " + half +
                                        "; accelerate casts what trains, the adapters, to fp32");
    } else if (shards || w.trained_fp32 || w.dtype == "fp32") {
      set_precision(half + "-autocast", shards ? "accelerate casts what FSDP trains to fp32"
                                               : "weights in fp32, computing in " + half);
    } else if (w.dtype.empty() && !lora) {
      set_precision(half + "-autocast",
                    "weights in fp32: the files do not say how the program loads them");
    } else {
      set_precision(half + "-pure", lora ? "the frozen model in " + half + ", adapters in fp32"
                                         : "weights loaded in " + half);
    }
  }

  /// Under FSDP1 what is frozen keeps its type where a flat tensor does not hold it with adapters.
  bool freezes_in(const std::string& half) const {
    const Json* originals = recipe_.find("/framework/use_orig_params");
    const bool apart = originals != nullptr && *originals == false;
    return recipe_.lora.contains("quantization") || (apart && recipe_.weights.dtype == half);
  }

  void set_precision(const std::string& name, std::string why) {
    if (recipe_.linear.empty())
      recipe_.assume("/precision", name, std::move(why));
    else
      recipe_.assume("/precision", Json{{"preset", name}, {"linear", recipe_.linear}},
                     std::move(why));
  }

  /// A ds_config that says its precision itself is left alone.
  void under_deepspeed(const std::string& half) {
    const Json* config = recipe_.find("/framework/ds_config");
    const auto decided = [&](const char* block) {
      const Json* enabled =
          config == nullptr ? nullptr : value_below_block(*config, block, "enabled");
      return enabled != nullptr && enabled->is_boolean() && *enabled == true;
    };
    if (decided("bf16") || decided("bfloat16") || decided("fp16")) return;
    if (config != nullptr && config->contains("torch_autocast")) return;
    const bool has_trainer = recipe_.bf16 || recipe_.fp16;
    if (!half.empty())
      set_precision(half + "-master", "the engine computes in it and keeps fp32 master weights");
    else if (has_trainer)
      set_precision("fp32", "neither bf16 nor fp16");
  }

  static const Json* value_below_block(const Json& config, const char* block, const char* key) {
    const auto found = config.find(block);
    if (found == config.end() || !found->is_object() || !found->contains(key)) return nullptr;
    return &found->at(key);
  }

  std::int64_t degree(const char* name) const {
    const Json* value = recipe_.find(fmt::format("/parallel/{}", name));
    return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : 1;
  }

  /// Tokens of a pass, where a step has `each` of the `whole` sequences that would fill it.
  void fill_budget(std::int64_t each, std::int64_t whole) {
    if (each == whole || !recipe_.rlhf.contains("token_budget")) return;
    const auto budget = recipe_.rlhf.at("token_budget").get<std::int64_t>();
    recipe_.rlhf["token_budget"] = (budget * each + whole - 1) / whole;
  }

  /// Micro-batches of a step from the sequences of all GPUs.
  void take_batch() {
    if (!recipe_.global_batch || recipe_.find("/workload/gradient_accumulation") != nullptr) return;
    const std::int64_t divided =
        degree("tensor") * degree("pipeline") * degree("sequence") * degree("context");
    const Json* micro = recipe_.find("/workload/micro_batch");
    std::int64_t each = micro == nullptr ? 1 : micro->get<std::int64_t>();
    const std::int64_t ranks =
        std::max<std::int64_t>(world_ / std::max<std::int64_t>(divided, 1), 1);
    if (recipe_.micro_batch_at_most && micro != nullptr && !flags_.contains("micro-batch")) {
      const std::int64_t whole = each;
      each = std::min(each, std::max<std::int64_t>(1, (*recipe_.global_batch + ranks - 1) / ranks));
      fill_budget(each, whole);
      set_field(recipe_.job, "/workload/micro_batch", each);
    }
    const std::int64_t at_once = ranks * each;
    if (recipe_.generated)
      recipe_.rlhf["generation_batch"] = std::max<std::int64_t>(1, *recipe_.generated / ranks);
    if (*recipe_.global_batch % at_once != 0)
      recipe_.note(
          {.kind = Note::Kind::warning,
           .key = "global batch",
           .reason = fmt::format("{} sequences are no multiple of {} GPUs × {}: rounded up",
                                 *recipe_.global_batch, ranks, each)});
    recipe_.assume(
        "/workload/gradient_accumulation", (*recipe_.global_batch + at_once - 1) / at_once,
        fmt::format("{} sequences a step over {} × {}", *recipe_.global_batch, ranks, each));
  }

  std::string model_type() const {
    const Json* model = said("model");
    if (model == nullptr) return {};
    const auto found = find_config(*model, {first_file(recipe_), "model", recipe_.directory});
    return found && found->config.is_object() ? found->config.value("model_type", "") : "";
  }

  /// Switches of single kernels are for every model; Liger has not all of them for each.
  void take_kernels() {
    const LigerPatch* patch = find_liger_patch(model_type());
    if (patch != nullptr && !patch->refused.empty()) return take_no_kernels(*patch);
    if (!recipe_.liger.empty() && patch != nullptr) choose_kernels(*patch);
    const Json* wanted = recipe_.find("/kernels");
    if (wanted == nullptr || !wanted->is_array()) return;
    Json kept = Json::array();
    for (const Json& name : *wanted) {
      const std::string word = name.get<std::string>();
      const std::string gated = word == "swiglu" ? "geglu" : word;
      if (patch != nullptr && takes(*patch, word))
        kept.push_back(word);
      else if (patch != nullptr && takes(*patch, gated))
        kept.push_back(gated);
      else
        recipe_.note({.kind = Note::Kind::ignored,
                      .key = "liger " + word,
                      .reason = "Liger has none for this model type"});
    }
    if (kept.empty())
      recipe_.job.erase("kernels");
    else
      recipe_.job["kernels"] = kept;
  }

  /// Liger's experts are not estimated. PyTorch's own kernels keep more; the fused loss is left.
  void take_no_kernels(const LigerPatch& patch) {
    const Json* wanted = recipe_.find("/kernels");
    if (wanted == nullptr || *wanted == "torch") return;
    constexpr std::string_view kFused = "fused_linear_cross_entropy";
    const bool fuses = wanted->is_array()
                           ? std::find(wanted->begin(), wanted->end(), kFused) != wanted->end()
                           : (patch.usual & bit_of(KernelName::fused_linear_cross_entropy)) != 0;
    const auto said = recipe_.liger.find(std::string(kFused));
    recipe_.job.erase("kernels");
    if (said == recipe_.liger.end() ? fuses : said->second)
      recipe_.set_default("/loss", "fused_linear");
    recipe_.note({.kind = Note::Kind::warning,
                  .key = "Liger's kernels",
                  .reason = fmt::format("of type {} are not estimated: PyTorch's are, which keep "
                                        "more, and the loss in parts where it is asked for",
                                        patch.model_type)});
  }

  /// liger_kernel_config over what Liger patches unless told otherwise.
  void choose_kernels(const LigerPatch& patch) {
    Json names = Json::array();
    const std::span<const FusedKernel* const> all = fused_kernels();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto said = recipe_.liger.find(std::string(all[i]->name));
      const bool usual = (patch.usual & bit_of(static_cast<KernelName>(i))) != 0;
      if (said == recipe_.liger.end() ? usual : said->second) names.push_back(all[i]->name);
    }
    recipe_.job["kernels"] = std::move(names);
  }

  static bool takes(const LigerPatch& patch, const std::string& name) {
    const std::span<const FusedKernel* const> all = fused_kernels();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i]->name == name)
        return (patch.takes & ~patch.without_effect & bit_of(static_cast<KernelName>(i))) != 0;
    return false;
  }

  /// A workload of several models has its batch and method among its own keys.
  void take_algorithm() {
    if (recipe_.algorithm.empty()) return;
    Json old = recipe_.job.value("workload", Json::object());
    Json workload{{"kind", "rlhf"}, {"algorithm", recipe_.algorithm}};
    for (const char* key : {"micro_batch", "gradient_accumulation", "method", "lora", "frozen"})
      if (old.contains(key)) workload[key] = old[key];
    if (!recipe_.rlhf.contains("prompt_length") && old.contains("sequence_length"))
      workload["sequence_length"] = old["sequence_length"];
    for (const auto& [key, value] : recipe_.rlhf.items()) workload[key] = value;
    if (const std::string kept = reference_precision(workload); !kept.empty())
      workload["models"]["reference"]["precision"] = kept;
    recipe_.job["workload"] = std::move(workload);
    leave_out_losses();
  }

  /// accelerate casts to fp32 what FSDP trains; a reference stays as it was loaded (TRL 1.16,
  /// models/utils.py, prepare_fsdp).
  std::string reference_precision(const Json& workload) const {
    const AlgorithmDescription* own = nullptr;
    for (const AlgorithmDescription& a : kAlgorithmDescriptions)
      if (a.name == recipe_.algorithm) own = &a;
    const bool copy = own != nullptr && own->has_reference && recipe_.lora.is_null() &&
                      workload.value("reference", "copy") == "copy";
    const std::string& dtype = recipe_.weights.dtype;
    const bool half = dtype == "bf16" || dtype == "fp16";
    return copy && half && framework().starts_with("fsdp") ? dtype + "-pure" : "";
  }

  /// The losses of these algorithms are their trainers' own, over logits or tiles of them.
  void leave_out_losses() {
    const auto leave_out = [&](const char* key) {
      recipe_.note({.kind = Note::Kind::ignored,
                    .key = key,
                    .reason = "the algorithm's loss is its trainer's own"});
    };
    if (recipe_.job.erase("loss") > 0) leave_out("loss");
    const Json* wanted = recipe_.find("/kernels");
    if (wanted == nullptr) return;
    Json names = *wanted;
    if (names == "liger") {
      names = Json::array();
      const LigerPatch* patch = find_liger_patch(model_type());
      for (std::size_t i = 0; patch != nullptr && i < fused_kernels().size(); ++i)
        if ((patch->usual & bit_of(static_cast<KernelName>(i))) != 0)
          names.push_back(fused_kernels()[i]->name);
    }
    if (!names.is_array()) return;
    Json kept = Json::array();
    for (const Json& name : names)
      if (name != "cross_entropy" && name != "fused_linear_cross_entropy") kept.push_back(name);
    if (kept.size() != names.size()) leave_out("liger's losses");
    recipe_.job["kernels"] = kept;
    if (kept.empty()) recipe_.job.erase("kernels");
  }

  Recipe& recipe_;
  const Json& flags_;
  const HardwareCatalog hardware_ = load_hardware_catalog();
  std::int64_t world_ = 1;
};

}  // namespace

Json finished_job(Recipe& recipe, const Json& flags) {
  return Finisher(recipe, flags).finish();
}

}  // namespace shardplan::importing
