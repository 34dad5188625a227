#include "import/kinds/ms_swift_keys.h"

#include <fmt/format.h>

#include "import/kinds/ms_swift_teacher.h"
#include "import/vocabulary.h"

namespace shardplan::importing::ms_swift {
namespace {

std::int64_t number_of(const Key& key, std::string_view name, std::int64_t otherwise) {
  const Json* value = key.other(name);
  return value != nullptr && value->is_number_integer() && *value > 0 ? value->get<std::int64_t>()
                                                                      : otherwise;
}

/// Tuners that keep less than LoRA of some rank. AdaLoRA has A·E beside its two matrices, as large
/// as A (peft, tuners/adalora/layer.py); Bone sums parts of its input before its one matrix, and
/// keeps those sums alone (tuners/miss/layer.py).
bool read_smaller_tuner(Key& key) {
  const std::string name = key.text();
  if (name != "adalora" && name != "bone") return false;
  const Json* start = key.other("init_weights");
  if (name == "bone" && start != nullptr && *start == "bat")
    key.refuse("Bone over whole weights ('bat') is not estimated", "init_weights true");
  constexpr std::int64_t kAdaLora = 12, kBone = 4;  // tuner_args.py: adalora_init_r, reft_rank
  const std::int64_t rank = name == "bone" ? number_of(key, "reft_rank", kBone)
                                           : 2 * number_of(key, "adalora_init_r", kAdaLora);
  make_lora(key.recipe());
  key.recipe().lora["rank"] = rank;
  key.warn(fmt::format("is estimated as LoRA of rank {}, which keeps more", rank));
  return true;
}

}  // namespace

void read_tuner(Key& key) {
  if (read_smaller_tuner(key)) return;
  const std::string name = key.text();
  if (name == "full") return key.took("workload.method: full");
  if (name == "llamapro")
    return key.warn("only blocks that it adds are trained: the estimate is for all, which is more");
  if (name != "lora" && name != "longlora" && name != "lora_llm")
    key.refuse(fmt::format("'{}' is not estimated", name),
               "full, lora, lora_llm, adalora, bone, longlora or llamapro");
  make_lora(key.recipe());
  if (name == "lora_llm") {  // tuner_plugin/lora_llm.py: tower and projector by their prefixes
    key.recipe().lora["train_whole"] =
        Json{"visual", "vision_tower", "vision_model", "multi_modal_projector", "connector"};
    key.recipe().frozen_tower = key.recipe().frozen_projector = false;
  }
  if (name == "longlora") key.warn("attention in shifted groups: it takes less than all of it");
  key.took("workload.method: lora");
}

void read_rank(Key& key) {
  if (is_full(key)) return key.ignore("no adapters");
  for (const char* name : {"tuner_type", "train_type"})
    if (const Json* type = key.other(name);
        type != nullptr && (*type == "adalora" || *type == "bone"))
      return key.ignore("the tuner has a rank of its own");
  read_lora_rank(key);
}

void read_targets(Key& key) {
  if (is_full(key)) return key.ignore("no adapters");
  read_lora_targets(key);
}

/// pipelines/train/tuner.py: words for all tables and all norms.
void read_saved(Key& key) {
  Json names = Json::array();
  for (const std::string& word : key.list()) {
    std::vector<const char*> meant;
    if (word == "all-embedding") meant = {"embed_tokens", "wte", "wpe", "word_embeddings"};
    if (word == "all-norm") meant = {"norm", "ln_f", "ln_1", "ln_2"};
    for (const char* name : meant) names.push_back(name);
    if (meant.empty()) names.push_back(word);
  }
  if (names.empty()) return key.ignore("empty");
  key.recipe().beside_lora["modules_to_save"] = names;
  key.took("workload.lora.modules_to_save: " + names.dump());
}

void read_padding_free(Key& key) {
  if (key.flag())
    key.warn("padding is left out: the longest batch is as long, shorter ones take less time");
  else
    key.ignore("off");
}

void fill_lora(Recipe& recipe) {
  if (!recipe.lora.contains("rank")) recipe.lora["rank"] = 8;
  if (!recipe.lora.contains("targets")) recipe.lora["targets"] = Json{"all-linear"};
  if (!recipe.beside_lora.contains("dropout")) recipe.beside_lora["dropout"] = 0.05;
}

}  // namespace shardplan::importing::ms_swift
