#include "import/finish.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "import/finisher.h"
#include "import/vocabulary.h"
#include "job/fields.h"
#include "load/catalog.h"
#include "load/model.h"
#include "model/architectures/registry.h"
#include "model/peft_targets.h"

namespace shardplan::importing {
namespace {

std::string first_file(const Recipe& recipe) {
  return recipe.kinds.empty() ? "" : recipe.kinds.front().first;
}

}  // namespace

Json Finisher::finish() {
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

const Json* Finisher::said(const char* key) const {
  const auto flag = flags_.find(key);
  if (flag != flags_.end()) return &*flag;
  const auto own = recipe_.job.find(key);
  return own == recipe_.job.end() ? nullptr : &*own;
}

void Finisher::ask(std::string key, std::string message, std::string expected,
                   std::string near) const {
  throw InputError({.file = first_file(recipe_),
                    .key = std::move(key),
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .nearest = std::move(near)});
}

/// A name of a hub stands for a model of the catalogue, or for one that only its config.json
/// tells.
void Finisher::take_model() {
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

const TrainerDescription& Finisher::trainer() const {
  const std::string name = recipe_.job.value("trainer", "");
  const auto known = std::ranges::find(trainers(), name, &TrainerDescription::name);
  return known == trainers().end() ? default_trainer() : **known;
}

std::string Finisher::framework() const {
  const Json* value = said("framework");
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  if (value->contains("name")) return value->at("name").get<std::string>();
  const Json* own = recipe_.find("/framework/name");  // a flag says an option alone
  return own != nullptr ? own->get<std::string>() : value->contains("ds_config") ? "deepspeed" : "";
}

/// What a trainer freezes before the text model, where the model has such parts.
void Finisher::take_images() {
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
void Finisher::take_tested_optimizers() {
  const Json* config = recipe_.find("/framework/ds_config");
  if (config == nullptr || !trainer().loads_divided) return;
  if (!config->contains("optimizer"))
    set_field(recipe_.job, "/framework/ds_config/zero_allow_untested_optimizer", true);
}

/// Pages of bitsandbytes' states under ZeRO are not estimated: all of them on the GPU take more.
void Finisher::take_pages() {
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

/// FlatParamHandle takes floating types only, and one in a tensor (_validate_tensors_to_flatten).
void Finisher::refuse_storage() const {
  const std::string& type = recipe_.packed_in;
  if (framework() != "fsdp1" || !recipe_.lora.contains("quantization") || type.empty()) return;
  if (type == "bfloat16" || type == "float16") return;
  ask("bnb_4bit_quant_storage",
      fmt::format("'{}' beside parameters of 16 bits, which FSDP1 does not flatten together", type),
      "the type that the model is loaded in");
}

void Finisher::take_lora() {
  if (recipe_.lora.is_null()) return;
  // TRL leaves a model alone that shards on the CPU or has no data yet (is_sharded_qlora).
  if (framework() == "fsdp1" && recipe_.lora.contains("quantization") &&
      !recipe_.lora.contains("prepare_kbit"))
    recipe_.lora["prepare_kbit"] = false;
  name_linears();
  refuse_storage();
  recipe_.lora.update(recipe_.beside_lora);
  set_field(recipe_.job, "/workload/method", "lora");
  set_field(recipe_.job, "/workload/lora", recipe_.lora);
}

/// Experts' joint weights are no linear layers since transformers 5: what looks for those (axolotl,
/// loaders/adapter.py; LLaMA-Factory, model_utils/misc.py; ms-swift, transformers_utils.py) hands
/// peft names of others.
void Finisher::name_linears() {
  const Json* model = said("model");
  if (!recipe_.names_linears || recipe_.lora.value("targets", Json()) != Json{"all-linear"} ||
      model == nullptr)
    return;
  const ModelContext context{first_file(recipe_), "model", recipe_.directory};
  const Model network = load_model(*model, context, {});
  Lora all;
  all.targets = {"all-linear"};
  if (take_expert_targets(network.facts.model_type, all).taken.empty()) return;
  recipe_.lora["targets"] = linear_names(network);
  recipe_.note({.kind = Note::Kind::assumed,
                .field = "workload.lora.targets: " + recipe_.lora["targets"].dump(),
                .reason = "the linear layers that there are: experts are none in transformers 5"});
}

std::string Finisher::model_type() const {
  const Json* model = said("model");
  if (model == nullptr) return {};
  const auto found = find_config(*model, {first_file(recipe_), "model", recipe_.directory});
  return found && found->config.is_object() ? found->config.value("model_type", "") : "";
}

Json finished_job(Recipe& recipe, const Json& flags) {
  return Finisher(recipe, flags).finish();
}

}  // namespace shardplan::importing
