// peft's adapter_config.json (peft 0.19, LoraConfig).
#include <array>

#include "import/kinds/kind.h"
#include "import/vocabulary.h"

namespace shardplan::importing::peft_adapter {
namespace {

bool is_peft_adapter(const Document& d) {
  return has_any(d, {"peft_type"}) || has_all(d, {"r", "lora_alpha", "target_modules"});
}

void read_type(Key& key) {
  const std::string type = key.text();
  if (type != "LORA") key.refuse("adapters of type " + type + " are not estimated", "LORA");
  make_lora(key.recipe());
  key.took("workload.method: lora");
}

void read_bias(Key& key) {
  if (key.text() != "none") key.refuse("trained biases are not estimated", "none");
  key.ignore("no trained biases");
}

constexpr std::array kRules{
    KeyRule{"peft_type", "", read_type},
    KeyRule{"base_model_name_or_path", "", read_model},
    KeyRule{"r", "", read_lora_rank},
    KeyRule{"target_modules", "", read_lora_targets},
    KeyRule{"lora_dropout", "", read_lora_dropout},
    KeyRule{"use_rslora", "", read_rank_stabilized},
    KeyRule{"use_dora", "", read_dora},
    KeyRule{"use_qalora", "", refuse_if_true},
    KeyRule{"lora_bias", "", refuse_if_true},
    KeyRule{"bias", "", read_bias},
    KeyRule{"modules_to_save", "", read_saved_modules},
    KeyRule{"layers_to_transform", "", refuse_if_said},
    KeyRule{"rank_pattern", "", refuse_if_said},
    KeyRule{"layer_replication", "", refuse_if_said},
    KeyRule{"target_parameters", "", read_target_parameters},
    KeyRule{"trainable_token_indices", "", refuse_if_said},
    KeyRule{"exclude_modules", "", refuse_if_said},
};

const std::array kIgnored{
    IgnoredKeys{"it changes values, not sizes",
                {"lora_alpha",          "alpha_pattern",  "init_lora_weights",
                 "fan_in_fan_out",      "inference_mode", "revision",
                 "task_type",           "auto_mapping",   "layers_pattern",
                 "loftq_config",        "megatron_*",     "eva_config",
                 "corda_config",        "peft_version",   "qalora_group_size",
                 "use_bdlora",          "arrow_config",   "alora_invocation_tokens",
                 "ensure_weight_tying", "lora_ga_config", "velora_config",
                 "monteclora_config"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

void read(const Document& d, Recipe& recipe) {
  read_keys(d, {&kOwn}, recipe);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"peft_adapter", "a peft adapter's configuration", is_peft_adapter, read};

}  // namespace shardplan::importing::peft_adapter
