// axolotl's YAML (067b021c8, July 2026: utils/schemas, loaders/model.py, core/builders/base.py).
#include "import/kinds/axolotl_keys.h"
#include "import/kinds/axolotl_rewards.h"
#include "import/kinds/kind.h"
#include "import/preference.h"
#include "import/training_keys.h"

namespace shardplan::importing::axolotl {
namespace {

bool is_axolotl(const Document& d) {
  return has_any(d, {"base_model"}) &&
         has_any(d, {"datasets", "pretraining_dataset", "sequence_len", "micro_batch_size",
                     "adapter", "test_datasets"});
}

/// loaders/model.py, _configure_embedding_dtypes: embeddings and norms become fp32 and, with these,
/// what they were again (schemas/config.py, attn_needs_dtype_cast).
bool casts_embeddings_back(const Document& d, const Recipe& recipe) {
  if (!recipe.lora.is_null()) return true;
  const Json* loss = recipe.find("/loss");
  if (loss != nullptr && *loss == "fused_linear" &&
      !has_any(d, {"liger_fused_linear_cross_entropy"}))
    return true;
  const Json* flag = value_below(d.value, "flash_attention");
  if (flag != nullptr && *flag == true) return true;
  const Json* attention = value_below(d.value, "attn_implementation");
  return attention != nullptr && attention->is_string() &&
         attention->get<std::string>().starts_with("flash_attention");
}

/// normalize_config: the weights are loaded in the computing type, and adapters beside them in fp32
/// (peft, autocast_adapter_dtype).
void read_loading(const Document& d, Recipe& recipe) {
  const bool bf16 = recipe.bf16.value_or(false);
  const bool fp16 = !bf16 && recipe.fp16.value_or(false);
  const bool int8 = recipe.lora.is_object() && recipe.lora.value("quantization", "") == "int8";
  recipe.weights.dtype = bf16 ? "bf16" : (fp16 || int8) ? "fp16" : "fp32";
  // monkeypatch/accelerate/fsdp2.py leaves out accelerate's cast of what trains.
  recipe.weights.kept_in_shards = true;
  recipe.weights.left_by_zero3 = casts_embeddings_back(d, recipe);
  // loaders/model.py casts embeddings and norms back behind prepare_model_for_kbit_training.
  if (!recipe.lora.is_null() && recipe.lora.contains("quantization"))
    recipe.lora["prepare_kbit"] = false;
}

void read(const Document& d, Recipe& recipe) {
  read_keys(d, {&kKeys, &kTrainingKeys, &kLoraKeys}, recipe);
  const Json* adapter = value_below(d.value, "adapter");
  if (adapter == nullptr || adapter->is_null()) recipe.lora = Json();  // lora_r says nothing then
  read_loading(d, recipe);
  make_step_rewards(d, recipe);
  // common/datasets.py, core/builders/causal.py: without a processor the data are texts.
  recipe.texts = !has_any(d, {"processor_type"});
  recipe.set_default("/trainer", "axolotl");
  recipe.assume("/workload/micro_batch", 1, "axolotl's default");
  recipe.set_default("/workload/gradient_accumulation", 1);
  recipe.assume("/workload/sequence_length", 512, "axolotl's default");
  recipe.assume("/optimizer", Json{{"name", "adamw"}, {"implementation", "fused"}},
                "axolotl's default, adamw_torch_fused");
  recipe.set_default("/gradient_clipping", 1.0);
  if (recipe.algorithm == "grpo") {
    recipe.rlhf["prompt_length"] = *recipe.find("/workload/sequence_length");
    if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 512;
  }
  settle_reference(recipe, 0);  // trl 1.8, grpo_config.py
  if (const Json* rl = value_below(d.value, "rl"); rl != nullptr && *rl == "ebft")
    recipe.rlhf["reference"] = recipe.lora.is_null() ? "copy" : "base";
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"axolotl", "an axolotl configuration", is_axolotl, read};

}  // namespace shardplan::importing::axolotl
