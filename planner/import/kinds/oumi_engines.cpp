// What divides the model: FSDP1 by way of accelerate, or DeepSpeed (oumi: core/distributed.py,
// core/configs/params/fsdp_params.py and deepspeed_params.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/ascii.h"
#include "import/fsdp.h"
#include "import/kinds/oumi.h"
#include "import/vocabulary.h"

namespace shardplan::importing::oumi {
namespace {

bool is_on(const Key& key, const char* name) {
  const Json* on = value_below(key.value(), name);
  return on != nullptr && (*on == true || *on == "true" || *on == "True");
}

/// An enumerated value by its name or its text: "ZERO_3" is "3", "CPU" is "cpu".
std::string word_of(const Json& value) {
  std::string word = value.is_string() ? lower(value.get<std::string>()) : value.dump();
  if (word.starts_with("zero_")) word = word.substr(5);
  return word;
}

constexpr std::array<std::string_view, 11> kFsdpKeys{
    "sharding_strategy", "cpu_offload",        "mixed_precision",      "backward_prefetch",
    "forward_prefetch",  "use_orig_params",    "state_dict_type",      "auto_wrap_policy",
    "min_num_params",    "sync_module_states", "transformer_layer_cls"};

/// The same keys and defaults as in DeepSpeedParams.to_deepspeed(), by the block that has them.
struct Default {
  const char* key;
  Json value;
};

Json block_with(const Key& key, const std::vector<Default>& defaults) {
  Json block = Json::object();
  for (const Default& d : defaults) {
    const Json* said = value_below(key.value(), d.key);
    block[d.key] = said == nullptr || said->is_null() ? d.value : *said;
  }
  return block;
}

Json offloaded(const Json& said) {
  Json block{{"device", "cpu"}, {"pin_memory", true}};
  if (said.contains("device")) block["device"] = word_of(said.at("device"));
  if (said.contains("pin_memory")) block["pin_memory"] = said.at("pin_memory");
  const bool nvme = block["device"] == "nvme";
  const char* count = nvme ? "buffer_count_nvme" : "buffer_count";
  block["buffer_count"] = said.value(count, Json(nvme ? 2 : 4));
  if (nvme && said.contains("nvme_path")) block["nvme_path"] = said.at("nvme_path");
  return block;
}

Json zero_block(const Key& key) {
  const Json* stage = value_below(key.value(), "zero_stage");
  const std::string word = stage == nullptr ? "0" : word_of(*stage);
  if (word.size() != 1 || word[0] < '0' || word[0] > '3')
    key.refuse(fmt::format("zero_stage: found '{}'", word), "ZERO_0, ZERO_1, ZERO_2 or ZERO_3");
  Json zero = word == "3" ? block_with(key, {{"overlap_comm", false},
                                             {"contiguous_gradients", true},
                                             {"sub_group_size", 1'000'000'000},
                                             {"reduce_bucket_size", 500'000'000},
                                             {"stage3_prefetch_bucket_size", 50'000'000},
                                             {"stage3_param_persistence_threshold", 100'000},
                                             {"stage3_max_live_parameters", 1'000'000'000},
                                             {"stage3_max_reuse_distance", 1'000'000'000}})
                          : block_with(key, {{"allgather_partitions", true},
                                             {"allgather_bucket_size", 500'000'000},
                                             {"overlap_comm", false},
                                             {"reduce_scatter", true},
                                             {"reduce_bucket_size", 500'000'000},
                                             {"contiguous_gradients", true},
                                             {"round_robin_gradients", false}});
  zero["stage"] = word[0] - '0';
  for (const char* part : {"offload_optimizer", "offload_param"}) {
    const Json* said = value_below(key.value(), part);
    if (said != nullptr && said->is_object()) zero[part] = offloaded(*said);
  }
  return zero;
}

}  // namespace

void read_fsdp(Key& key) {
  if (!is_on(key, "enable_fsdp")) return key.ignore("enable_fsdp is not on");
  if (key.other_is_true("deepspeed.enable_deepspeed"))
    key.refuse("FSDP and DeepSpeed are both on, at which oumi stops", "one of the two");
  Json block = Json::object();
  for (const auto& [name, value] : key.value().items()) {
    if (name == "enable_fsdp") continue;
    if (std::ranges::find(kFsdpKeys, name) == kFsdpKeys.end())
      key.refuse(fmt::format("unknown key '{}', at which oumi stops", name),
                 fmt::format("one of {}", fmt::join(kFsdpKeys, ", ")));
    // Of accelerate's environment, whose word it is for half precision.
    if (name == "mixed_precision") continue;
    block[name == "transformer_layer_cls" ? "transformer_layer_cls_to_wrap" : name] = value;
  }
  if (const Json* half = value_below(key.value(), "mixed_precision"); half && half->is_string()) {
    const std::string word = lower(half->get<std::string>());
    if (word == "bf16") key.recipe().bf16 = true;
    if (word == "fp16") key.recipe().fp16 = true;
    if (word != "bf16" && word != "fp16" && word != "no")
      key.refuse(fmt::format("mixed_precision: found '{}'", word), "bf16, fp16 or no");
  }
  // Flat tensors hold what is frozen and adapters apart unless the model is compiled.
  const bool apart = key.other_is_true("use_peft") && !key.other_is_true("compile");
  const FsdpDialect dialect{1, apart ? "false" : "true", "BACKWARD_PRE", "NO_WRAP"};
  read_fsdp_block(key, block, "", dialect);
}

void read_deepspeed(Key& key) {
  if (!is_on(key, "enable_deepspeed")) return key.ignore("enable_deepspeed is not on");
  const Json* file = value_below(key.value(), "deepspeed_config_path");
  if (file != nullptr && file->is_string()) {
    const std::string path = resolved_path(file->get<std::string>(), key.document().file);
    if (path.empty())
      key.refuse(fmt::format("deepspeed_config_path: no file '{}'", file->get<std::string>()),
                 "the ds_config beside this one, or in the working directory");
    return attach_ds_config(key, ds_config_of_trainer(path), path);
  }
  Json config{{"zero_optimization", zero_block(key)},
              {"train_micro_batch_size_per_gpu", "auto"},
              {"gradient_accumulation_steps", "auto"},
              {"gradient_clipping", "auto"},
              {"zero_allow_untested_optimizer", true}};
  const Json* force = value_below(key.value(), "zero_force_ds_cpu_optimizer");
  config["zero_force_ds_cpu_optimizer"] = force == nullptr ? Json(true) : *force;
  // "auto": what the trainer's own bf16 and fp16 say.
  if (const Json* half = value_below(key.value(), "precision"); half && !half->is_null())
    config[word_of(*half)] = Json{{"enabled", "auto"}};
  attach_ds_config(key, config, "");
}

}  // namespace shardplan::importing::oumi
