#include "import/kinds/axolotl_rewards.h"

#include <algorithm>
#include <optional>

#include "import/preference.h"
#include "import/vocabulary.h"
#include "load/model.h"

namespace shardplan::importing::axolotl {

/// Energy-based fine-tuning is GRPO whose rewards are features of a frozen network: the trained one
/// with its adapters off, or a copy (core/trainers/ebft/trainer.py, EBFTMixin).
void read_rl(Key& key) {
  if (key.text() != "ebft") return read_algorithm(key);
  const Json* mode = key.other("ebft.mode");
  if (mode != nullptr && *mode == "strided")
    key.refuse(
        "EBFT's blocks that one pass generates and trains on (ebft.mode strided) are not "
        "estimated",
        "ebft.mode structured");
  key.recipe().take_algorithm("grpo", key.origin());
  key.warn(
      "is estimated as GRPO with a reference, whose logits take more than the features that EBFT "
      "reads; features of the given answers, one for each prompt, take time that is not counted");
}

void read_step_rewards(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.took("model.architectures");
}

/// A head of so many labels for each token, and a cross-entropy over it (TRL's PRMTrainer).
void make_step_rewards(const Document& d, Recipe& recipe) {
  const Json* asked = value_below(d.value, "process_reward_model");
  if (asked == nullptr) return;
  const Key key(d, "process_reward_model", *asked, "", recipe);
  if (!key.flag()) return;
  const Json* named = recipe.has_model ? &recipe.asked_model : recipe.find("/model");
  const auto found =
      named == nullptr ? std::nullopt : find_config(*named, {d.file, key.path(), recipe.directory});
  if (!found) key.refuse("the model is not known", "a model of the catalogue");
  Json config = found->config;
  std::string stem = config.value("model_type", "");  // "qwen3_moe" is Qwen3Moe's, in any case
  std::erase(stem, '_');
  config["architectures"] = Json::array({stem + "ForTokenClassification"});
  const Json* labels = key.other("num_labels");
  config["num_labels"] = labels != nullptr && labels->is_number_integer() ? *labels : Json(2);
  recipe.job["model"] = config;
}

void read_reward(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.recipe().take_algorithm("reward", key.origin());
  key.took("workload.algorithm: reward");
}

void read_vllm(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn("vLLM generates elsewhere, or beside the trainer with memory of its own");
}

}  // namespace shardplan::importing::axolotl
