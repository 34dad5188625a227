#include "import/preference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/nearest.h"
#include "lowering/rlhf/algorithms.h"

namespace shardplan::importing {
namespace {

/// Words beside the algorithms' own names. IPO, hinge and the like are other losses of DPO's
/// trainer, SimPO of CPO's, and these of GRPO's.
constexpr std::array kWords{std::pair{"rm", "reward"},  std::pair{"ipo", "dpo"},
                            std::pair{"simpo", "cpo"},  std::pair{"gdpo", "grpo"},
                            std::pair{"dapo", "grpo"},  std::pair{"gspo", "grpo"},
                            std::pair{"cispo", "grpo"}, std::pair{"dr_grpo", "grpo"}};

/// Where a recipe keeps what it knows of GRPO's coefficient until the whole file is read.
constexpr const char* kBeta = "beta";

/// Answers to a prompt (TRL, grpo_config.py; ms-swift, arguments/rlhf_args.py).
constexpr std::int64_t kUsualCompletions = 8;

}  // namespace

std::string algorithm_word(std::string_view word) {
  const std::string name = normalized(word);
  for (const AlgorithmDescription& a : kAlgorithmDescriptions)
    if (name == a.name && a.algorithm != Algorithm::sft) return std::string(a.name);
  for (const auto& [other, algorithm] : kWords)
    if (name == normalized(other)) return algorithm;
  return "";
}

void read_algorithm(Key& key) {
  const std::string name = algorithm_word(key.text());
  if (name.empty())
    key.refuse(fmt::format("the algorithm '{}' is not estimated", key.text()),
               "dpo, ipo, kto, orpo, simpo, cpo, rm, ppo, grpo or gkd");
  key.recipe().take_algorithm(name, key.origin());
  key.took("workload.algorithm: " + name);
}

void read_precomputed(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.recipe().rlhf["reference"] = "precomputed";
  key.took("workload.reference: precomputed");
}

void read_new_tokens(Key& key) {
  key.recipe().rlhf["new_tokens"] = key.integer(1);
  key.took("workload.new_tokens");
}

void read_prompt_tokens(Key& key) {
  key.recipe().rlhf["prompt_length"] = key.integer(1);
  key.took("workload.prompt_length");
}

void read_completions(Key& key) {
  if (!key.other_is_true("use_vllm"))
    return key.ignore("answers share their prompt in an engine alone");
  key.took("workload.rollout.completions");
}

void read_beta(Key& key) {
  key.recipe().rlhf[kBeta] = key.number();
  key.took("whether a reference is asked, where the algorithm may do without");
}

namespace {

/// The engine's keys that count, and those that are written nearly alike.
void refuse_misspelt(const Key& key) {
  constexpr std::string_view kBegin = "vllm_";
  static constexpr std::array<std::string_view, 4> kCounts{
      "vllm_mode", "vllm_gpu_memory_utilization", "vllm_tensor_parallel_size",
      "vllm_enable_sleep_mode"};
  if (!key.document().value.is_object()) return;
  for (const auto& [name, value] : key.document().value.items()) {
    if (!name.starts_with(kBegin) || std::ranges::find(kCounts, name) != kCounts.end()) continue;
    // Two letters: the degree of a pipeline is another key, not a tensor degree misspelt.
    const auto* near = std::ranges::find_if(kCounts, [&, &spelt = name](std::string_view known) {
      return spelling_distance(spelt, known) <= 2;
    });
    if (near == kCounts.end()) continue;
    const Key misspelt(key.document(), name, value, "", key.recipe());
    misspelt.refuse("unknown key", std::string(*near), std::string(*near));
  }
}

}  // namespace

void read_vllm_engine(Key& key, const VllmDefaults& usual) {
  if (!key.flag()) return key.ignore("generation by the model itself");
  refuse_misspelt(key);
  Json engine{{"engine", "vllm"}};
  const Json* mode = key.other("vllm_mode");
  const bool apart = mode != nullptr && *mode == "server";
  engine["placement"] = apart ? "separate" : "colocated";
  if (!apart) {
    const Json* share = key.other("vllm_gpu_memory_utilization");
    engine["gpu_memory_utilization"] = share == nullptr ? Json(usual.utilization) : *share;
  }
  engine["max_num_batched_tokens"] = usual.batched_tokens;
  if (const Json* degree = key.other("vllm_tensor_parallel_size"))
    engine["tensor_parallel"] = *degree;
  const Json* answers = key.other("num_generations");
  engine["completions"] = answers != nullptr ? *answers : Json(kUsualCompletions);
  if (key.other_is_true("vllm_enable_sleep_mode")) engine["sleep_level"] = 2;
  if (const Json* level = key.other("sleep_level")) engine["sleep_level"] = *level;
  key.recipe().rlhf["rollout"] = engine;
  key.took("workload.rollout");
}

void settle_distillation(const Document& document, Recipe& recipe) {
  if (recipe.algorithm != "gkd") return;
  const Json* share = value_below(document.value, "lmbda");
  if (share != nullptr && share->is_number() && *share == 0) {
    for (const char* key : {"new_tokens", "rollout"}) recipe.rlhf.erase(key);
    return;
  }
  recipe.algorithm = "gkd_on_policy";
  recipe.note({.kind = Note::Kind::assumed,
               .field = "workload.algorithm: gkd_on_policy",
               .reason = "steps on the student's own answers, which are longer than given ones"});
}

bool generates(const Recipe& recipe) {
  return std::ranges::any_of(kAlgorithmDescriptions, [&](const AlgorithmDescription& a) {
    return a.generates && a.name == recipe.algorithm;
  });
}

void settle_reference(Recipe& recipe, double usual) {
  const double beta = recipe.rlhf.value(kBeta, usual);
  recipe.rlhf.erase(kBeta);
  const auto* own = std::ranges::find(kAlgorithmDescriptions, std::string_view(recipe.algorithm),
                                      &AlgorithmDescription::name);
  if (own == kAlgorithmDescriptions.end() || !own->generates) recipe.rlhf.erase("rollout");
  if (recipe.algorithm != "grpo" && recipe.rlhf.contains("rollout"))
    recipe.rlhf["rollout"].erase("completions");
  if (value_below(recipe.rlhf, "models.reference.model") != nullptr) {
    recipe.rlhf["reference"] = "copy";
    return;
  }
  if (recipe.algorithm != "grpo" || beta != 0) return;
  recipe.rlhf["reference"] = "none";
  recipe.note({.kind = Note::Kind::assumed,
               .field = "workload.reference: none",
               .reason = "the divergence from a reference has a coefficient of zero"});
}

}  // namespace shardplan::importing
