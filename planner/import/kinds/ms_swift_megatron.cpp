#include "import/kinds/ms_swift_megatron.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "import/kinds/kind.h"
#include "import/kinds/megatron.h"
#include "import/kinds/ms_swift_keys.h"
#include "import/kinds/ms_swift_teacher.h"
#include "import/preference.h"
#include "import/vocabulary.h"

namespace shardplan::importing::ms_swift {
namespace {

/// Megatron Core's names of linears, which are joint, in the words of Hugging Face.
Json parts_of_joint(const Json& targets) {
  static const std::map<std::string, std::vector<const char*>, std::less<>> kParts{
      {"linear_qkv", {"q_proj", "k_proj", "v_proj"}},
      {"linear_proj", {"o_proj"}},
      {"linear_fc1", {"gate_proj", "up_proj"}},
      {"linear_fc2", {"down_proj"}},
      {"linear_q_down_proj", {"q_a_proj"}},
      {"linear_q_up_proj", {"q_b_proj"}},
      {"linear_q_proj", {"q_proj"}},
      {"linear_kv_down_proj", {"kv_a_proj_with_mqa"}},
      {"linear_kv_up_proj", {"kv_b_proj"}},
      {"in_proj",
       {"in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "in_proj_qkvz", "in_proj_ba"}}};
  Json names = Json::array();
  for (const Json& target : targets) {
    const auto found = kParts.find(target.get<std::string>());
    if (found == kParts.end())
      names.push_back(target);
    else
      for (const char* part : found->second) names.push_back(part);
  }
  return names;
}

/// Of `megatron rlhf`: distillation compares whole logits, whose vocabulary tensor ranks divide.
void read_megatron_algorithm(Key& key) {
  const std::string name = key.text();
  if (name == "gkd")
    key.refuse(fmt::format("'{}' under Megatron-LM is not estimated", name),
               "dpo, kto, rm or grpo");
  read_algorithm(key);
}

/// What GRPO generates (megatron_args.py, RLHFMegatronArgumentsMixin): in vLLM unless told
/// otherwise, as many answers as `steps_per_generation` steps train on; `offload_model` and
/// `offload_optimizer` move parameters, gradients and states away meanwhile (rollout_mixin.py,
/// offload_context).
void take_generation(const Document& d, Recipe& recipe) {
  const Json* vllm = value_below(d.value, "use_vllm");
  const Json yes = true;
  Key engine(d, "use_vllm", vllm == nullptr ? yes : *vllm, "", recipe);
  read_vllm_engine(engine, {});
  const Json* length = recipe.find("/workload/sequence_length");
  recipe.rlhf["prompt_length"] = length == nullptr ? Json(2048) : *length;
  if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 512;
  const auto is_on = [&](const char* key) {
    const Json* value = value_below(d.value, key);
    return value != nullptr && Key(d, key, *value, "", recipe).flag();
  };
  const bool model = is_on("offload_model"), states = is_on("offload_optimizer");
  if (model || states)
    recipe.rlhf["models"]["actor"]["idle"] = model && states ? "host"
                                             : model         ? "parameters"
                                                             : "optimizer";
  const auto count = [&](const char* key, std::int64_t otherwise) {
    const Json* value = value_below(d.value, key);
    return value == nullptr ? otherwise : Key(d, key, *value, "", recipe).integer(1);
  };
  const std::int64_t steps = count("steps_per_generation", 1);
  recipe.generated = count("generation_batch_size", recipe.global_batch.value_or(16) * steps);
  // Scores are made a micro-batch at a time (grpo_trainer.py).
  if (const Json* micro = recipe.find("/workload/micro_batch"); micro != nullptr)
    recipe.rlhf["scoring_batch"] = *micro;
  settle_reference(recipe, 0.04);
}

/// vit_gradient_checkpointing: unless told otherwise layers of a tower that trains are recomputed,
/// one by one, and those of a frozen one are not (trainers/base.py).
void read_tower_checkpointing(const Document& d, Recipe& recipe) {
  const Json* said = value_below(d.value, "vit_gradient_checkpointing");
  const bool trains = !*recipe.frozen_tower;
  if (!trains ||
      (said != nullptr && !Key(d, "vit_gradient_checkpointing", *said, "", recipe).flag()))
    return;
  recipe.note({.kind = Note::Kind::warning,
               .file = d.file,
               .key = "vit_gradient_checkpointing",
               .reason = "what a tower's layers keep is estimated as kept, which is more"});
}

/// megatron_args.py, where its defaults are not Megatron-LM's.
void assume_megatron_defaults(const Document& d, Recipe& recipe) {
  if (!has_any(d, {"bf16", "fp16"})) {
    const bool half = recipe.weights.dtype == "fp16";
    recipe.assume(has_any(d, {"fp8_format"}) ? "/precision/preset" : "/precision",
                  half ? "fp16-master" : "bf16-master",
                  "ms-swift computes in the checkpoint's type");
  }
  if (!has_any(d, {"recompute_granularity"}))
    recipe.assume("/checkpointing", "selective", "ms-swift's default");
  if (!has_any(d, {"global_batch_size"})) recipe.global_batch = 16;
  if (has_any(d, {"expert_model_parallel_size"}))
    recipe.assume("/parallel/expert_tensor", 1, "ms-swift's default");
}

}  // namespace

void read_megatron(const Document& d, Recipe& recipe) {
  Document arguments = d;
  const auto read_own = [&](const char* own, auto&& reader) {
    const auto found = arguments.value.find(own);
    if (found == arguments.value.end()) return;
    Key key(d, own, *found, "", recipe);
    reader(key);
    arguments.value.erase(own);
  };
  // All parameters train unless told otherwise.
  for (const char* type : {"tuner_type", "train_type"}) read_own(type, read_tuner);
  read_own("freeze_vit", read_frozen_tower);
  read_own("freeze_aligner", read_frozen_projector);
  read_own("freeze_llm", refuse_if_true);
  read_own("language_model_only", [](Key& key) {
    if (!key.flag()) return key.ignore("off");
    key.recipe().texts = true;
    key.took("workload.images: 0");
  });
  freeze_by_default(recipe);
  read_tower_checkpointing(d, recipe);
  const bool adapts = !recipe.lora.is_null();
  const auto of_adapters = [&](void (*reader)(Key&)) {
    return [adapts, reader](Key& key) { adapts ? reader(key) : key.ignore("no adapters"); };
  };
  read_own("model", read_model);
  read_own("torch_dtype", read_weights_dtype);
  read_own("packing", [](Key& key) { key.take("/workload/packing", key.flag()); });
  read_own("padding_free", read_padding_free);
  read_own("max_length", [](Key& key) { key.take("/workload/sequence_length", key.integer(1)); });
  read_own("rlhf_type", read_megatron_algorithm);
  if (generates(recipe)) {
    read_own("max_completion_length", read_new_tokens);
    read_own("beta", read_beta);
    read_own("teacher_model", read_teacher);
    read_own("teacher_model_server", refuse_teacher_server);
  }
  read_own("lora_rank", of_adapters(read_rank));
  read_own("lora_dropout", of_adapters(read_lora_dropout));
  read_own("modules_to_save", of_adapters(read_saved));
  read_own("target_modules", of_adapters(read_targets));
  if (adapts) {
    fill_lora(recipe);
    recipe.lora["targets"] = parts_of_joint(recipe.lora["targets"]);
    // rlhf_mixin.py, null_ref_context: the trained model with its adapters off.
    if (!recipe.algorithm.empty() && recipe.algorithm != "reward")
      recipe.rlhf["reference"] = "base";
  }
  assume_megatron_defaults(d, recipe);
  static const KeyTable kOthers{{}, ignored_keys()};
  read_megatron_arguments(arguments, recipe, &kOthers);
  if (generates(recipe)) take_generation(d, recipe);
  if (!has_any(d, {"use_distributed_optimizer"}))
    recipe.job["framework"]["distributed_optimizer"] = true;
}

}  // namespace shardplan::importing::ms_swift
