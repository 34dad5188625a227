#include "load/trainer_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lowering/rlhf/algorithms.h"
#include "options/tables.h"
#include "trainers/registry.h"

namespace shardplan {
namespace {

/// Of `block`, as jobs name it; "": nothing, or no such value, which its reader refuses.
std::string chosen(const OptionInfo& option, const Json& block, const char* key) {
  if (!block.is_object()) return "";
  const auto said = block.find(key);
  if (said == block.end() || !said->is_string()) return "";
  const NamedValue* value = find_choice(option.choices, said->get<std::string>());
  return value == nullptr ? "" : std::string(value->name);
}

class Filler {
 public:
  Filler(const TrainerDescription& trainer, Json job, std::int64_t world)
      : words_(trainer.words), own_(*trainer.defaults), job_(std::move(job)), world_(world) {}

  FilledJob fill() {
    if (!trains()) return take();
    framework();
    if (under_.has_own_workers) job_.erase("trainer");
    if (!under_.overlaps)
      for (const char* key : {"overlap_grad_reduce", "overlap_param_gather"})
        put(job_["framework"], key, false, "framework.");
    types();
    const auto work = job_.find("workload");
    if (work == job_.end() || !work->is_object() || work->value("kind", Json()) != "rlhf")
      return take();
    const std::string algorithm = chosen(info_of(rlhf_table(), "algorithm"), *work, "algorithm");
    for (const AlgorithmDescription& a : kAlgorithmDescriptions)
      if (algorithm == a.name) several(*work, a);
    return take();
  }

 private:
  FilledJob take() { return {std::move(job_), std::move(assumed_)}; }

  /// No trainer generates or serves alone, which is refused where the job is read.
  bool trains() const {
    const auto work = job_.find("workload");
    if (work == job_.end() || !work->is_object()) return true;
    return chosen(info_of(kind_option_table(), "kind"), *work, "kind") != "inference" &&
           !work->contains("engine");
  }

  void assume(std::string_view field, std::string_view value) {
    assumed_.push_back(fmt::format("{}: {}, as {} has it", field, value, words_));
  }

  /// `value` where `block` has none, which is said.
  void put(Json& block, const char* key, Json value, std::string_view path) {
    if (const auto said = block.find(key); said != block.end() && !said->is_null()) return;
    assume(fmt::format("{}{}", path, key),
           value.is_string() ? value.get<std::string>() : value.dump());
    block[key] = std::move(value);
  }

  void framework() {
    Json& said = job_["framework"];
    if (said.is_string()) said = Json{{"name", said}};
    if ((said.is_null() || said.empty()) && !own_.framework.empty()) {
      said = Json{{"name", own_.framework}};
      assume("framework", own_.framework);
      if (own_.zero_stage > 0) put(said, "zero_stage", own_.zero_stage, "framework.");
    }
    if (said.is_null()) {
      job_.erase("framework");
      return;
    }
    const std::string name = chosen(info_of(framework_name_table(), "name"), said, "name");
    for (const FrameworkDefaults& under : own_.under)
      if (name == under.framework) under_ = under;
  }

  bool lora() const {
    const auto work = job_.find("workload");
    return work != job_.end() && work->is_object() &&
           (work->value("method", Json()) == "lora" || work->contains("lora"));
  }

  void types() {
    if (!under_.reduced.empty())
      put(job_["framework"], "reduce_dtype", under_.reduced, "framework.");
    const bool adapters = lora() && !under_.lora_precision.empty();
    const std::string_view precision = adapters ? under_.lora_precision : under_.precision;
    if (!precision.empty()) put(job_, "precision", precision, "");
    if (under_.optimizer.empty()) return;
    Json& said = job_["optimizer"];
    if (said.is_null()) said = Json{{"name", "adamw"}};
    if (said == "adamw") said = Json{{"name", said}};
    if (said.is_object() && said.value("name", Json("adamw")) == "adamw")
      put(said, "implementation", under_.optimizer, "optimizer.");
  }

  void several(Json& work, const AlgorithmDescription& algorithm) {
    const Json models = work.value("models", Json::object());
    if (!models.is_object()) return;
    if (own_.judges_by_function && algorithm.needs_reward && !models.contains("reward"))
      put(work, "rewards", "function", "workload.");
    if (under_.scores_entropy && !work.contains("entropy"))
      put(work, "scoring_entropy", "compiled", "workload.");
    if (algorithm.generates) engine(work);
    reference(work, algorithm);
    if (work.contains("rollout") && shares(work) && own_.actor_on_host)
      waits(work, "actor", Json{{"idle", "host"}});
  }

  static bool shares(const Json& work) {
    const Json& rollout = work.at("rollout");
    return rollout.is_object() && rollout.value("placement", Json("colocated")) == "colocated";
  }

  /// Of one that it does not start: nothing.
  EngineDefaults engine_of(const Json& rollout) const {
    const Json name = rollout.value("engine", Json(own_.engines.front().engine));
    for (const EngineDefaults& usual : own_.engines)
      if (name == usual.engine) return usual;
    return {};
  }

  void engine(Json& work) {
    if (own_.always_has_engine && !work.contains("hybrid_engine"))
      put(work, "rollout", Json{{"engine", own_.engines.front().engine}}, "workload.");
    const auto said = work.find("rollout");
    if (said == work.end() || !said->is_object()) return;
    const EngineDefaults usual = engine_of(*said);
    const auto fill = [&](const char* key, const Json& value) {
      put(*said, key, value, "workload.rollout.");
    };
    const bool starts = usual.starts_server || shares(work);
    if (usual.utilization > 0 && starts) fill("gpu_memory_utilization", usual.utilization);
    if (usual.sleep_level > 0 && shares(work)) fill("sleep_level", usual.sleep_level);
    for (const auto& [key, value] :
         {std::pair{"max_num_batched_tokens", starts ? usual.batched_tokens : 0},
          std::pair{"max_num_seqs", usual.sequences}, std::pair{"weight_bucket", usual.bucket},
          std::pair{"completions", usual.completions}})
      if (value > 0) fill(key, value);
    if (!usual.finds_prefixes) fill("prefix_caching", false);
    if (!under_.asks_log_probabilities) return;
    fill("log_probabilities", true);
    if (said->value("tensor_parallel", Json(1)) != 1) fill("async_scheduling", false);
  }

  void reference(Json& work, const AlgorithmDescription& algorithm) {
    const bool copy = algorithm.has_reference && work.value("reference", Json("copy")) == "copy" &&
                      !(lora() && !work.contains("reference"));
    if (!copy) return;
    if (own_.reference_on_host) waits(work, "reference", Json{{"idle", "host"}});
    if (!under_.reference_shards_on_host) return;
    Json shards = job_.at("framework");
    shards["cpu_offload"] = true;
    waits(work, "reference", world_ > 1 ? Json{{"framework", shards}} : Json{{"idle", "host"}});
  }

  /// Unless the job says where the model is.
  void waits(Json& work, const char* role, Json where) {
    Json& own = work["models"][role];
    if (own.is_null()) own = Json::object();
    if (!own.is_object() || own.contains("idle") || own.contains("framework")) return;
    own.update(where);
    assume(fmt::format("workload.models.{}", role), "on the host while it does not work");
  }

  std::string_view words_;
  const TrainerDefaults& own_;
  FrameworkDefaults under_;  ///< the job's framework
  Json job_;
  std::int64_t world_;
  std::vector<std::string> assumed_;
};

}  // namespace

FilledJob with_trainer_defaults(Json job, std::int64_t world) {
  const std::string trainer = chosen(info_of(job_option_table(), "trainer"), job, "trainer");
  for (const TrainerDescription* own : trainers())
    if (trainer == own->name && own->defaults != nullptr)
      return Filler(*own, std::move(job), world).fill();
  return {std::move(job), {}};
}

}  // namespace shardplan
