#include "load/trainer_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lowering/rlhf/algorithms.h"
#include "options/tables.h"

namespace shardplan {
namespace {

/// An engine as a trainer starts it.
struct EngineDefaults {
  double utilization = 0;
  int sleep_level = 0;  ///< where it shares the trainer's GPUs
  std::int64_t batched_tokens = 0, sequences = 0, bucket = 0, completions = 0;  ///< 0: left open
  bool finds_prefixes = true;
  bool starts_server = true;  ///< on GPUs of its own, too; else another command says its share
};

/// What of a job a trainer of several models decides.
struct TrainerDefaults {
  std::string_view trainer;    ///< in jobs
  std::string_view words;      ///< for people
  std::string_view framework;  ///< "": the job's usual one
  int zero_stage = 0;
  /// Under FSDP: the type that gradients are reduced in, precision and the kind of AdamW; "": the
  /// job's usual ones.
  std::string_view reduced, precision, optimizer;
  std::string_view lora_precision;  ///< under FSDP1 alone
  EngineDefaults vllm, sglang;
  bool always_has_engine = false;
  bool judges_by_function = false;  ///< PPO without a reward model
  bool reference_on_host = false;   ///< its whole weights wait there
  bool reference_shards_on_host = false;
  bool actor_on_host = false;  ///< while an engine on its GPUs generates
  /// Its workers under Megatron-LM are Megatron-LM's, whose jobs name no trainer.
  bool has_megatron = false;
  bool overlaps_megatron = true;  ///< its reductions and gathers
  bool scores_entropy = false;    ///< there, beside log-probabilities
  bool asks_log_probabilities = false;
};

constexpr std::int64_t kMebi = std::int64_t{1} << 20;

/// verl 0.8: trainer/config/actor/dp_actor.yaml, engine/fsdp.yaml, rollout/rollout.yaml,
/// workers/config/optimizer.py (torch.optim.AdamW), workers/actor/megatron_actor.py. NeMo RL
/// 7ea279abf: examples/configs/ grpo_math_1B.yaml; vLLM's sizes as engine/arg_utils.py of 0.20 has
/// them for the class LLM. OpenRLHF 3c3be623: cli/train_ppo_ray.py. TRL 1.16:
/// trainer/grpo_config.py, generation/vllm_generation.py; accelerate casts what FSDP1 trains, and
/// with it the base, to fp32.
constexpr std::array kTrainerDefaults{
    TrainerDefaults{.trainer = "verl",
                    .words = "verl",
                    .framework = "fsdp1",
                    .reduced = "fp32",
                    .precision = "bf16-autocast",
                    .optimizer = "foreach",
                    .vllm = {.utilization = 0.5,
                             .sleep_level = 2,
                             .batched_tokens = 8192,
                             .sequences = 256,
                             .bucket = 2048 * kMebi},
                    .sglang = {.utilization = 0.5,
                               .sleep_level = 2,
                               .batched_tokens = 8192,
                               .sequences = 256,
                               .bucket = 2048 * kMebi},
                    .judges_by_function = true,
                    .reference_shards_on_host = true,
                    .has_megatron = true,
                    .overlaps_megatron = false,
                    .scores_entropy = true},
    TrainerDefaults{
        .trainer = "nemo_rl",
        .words = "NeMo RL",
        .framework = "fsdp2",
        .reduced = "fp32",
        .precision = "bf16-autocast",
        .optimizer = "for-loop",
        .vllm = {.utilization = 0.6, .sleep_level = 1, .batched_tokens = 16384, .sequences = 1024},
        .sglang = {.utilization = 0.88, .sleep_level = 2},
        .always_has_engine = true,
        .reference_on_host = true,
        .actor_on_host = true,
        .has_megatron = true,
        .asks_log_probabilities = true},
    TrainerDefaults{.trainer = "openrlhf",
                    .words = "OpenRLHF",
                    .framework = "deepspeed",
                    .zero_stage = 2,
                    .vllm = {.utilization = 0.95, .finds_prefixes = false},
                    .always_has_engine = true},
    TrainerDefaults{
        .trainer = "trl",
        .words = "TRL",
        .lora_precision = "bf16-autocast",
        .vllm = {
            .utilization = 0.3, .batched_tokens = 4096, .completions = 8, .starts_server = false}}};

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
  Filler(const TrainerDefaults& own, Json job, std::int64_t world)
      : own_(own), job_(std::move(job)), world_(world) {}

  FilledJob fill() {
    if (!trains()) return take();
    framework();
    if (name_ == "megatron") {
      if (!own_.has_megatron) return take();
      job_.erase("trainer");
      if (!own_.overlaps_megatron)
        for (const char* key : {"overlap_grad_reduce", "overlap_param_gather"})
          put(job_["framework"], key, false, "framework.");
    } else if (name_.starts_with("fsdp")) {
      shards();
    }
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
    assumed_.push_back(fmt::format("{}: {}, as {} has it", field, value, own_.words));
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
    name_ = chosen(info_of(framework_name_table(), "name"), said, "name");
  }

  bool lora() const {
    const auto work = job_.find("workload");
    return work != job_.end() && work->is_object() &&
           (work->value("method", Json()) == "lora" || work->contains("lora"));
  }

  void shards() {
    if (!own_.reduced.empty()) put(job_["framework"], "reduce_dtype", own_.reduced, "framework.");
    const bool adapters = name_ == "fsdp1" && lora() && !own_.lora_precision.empty();
    const std::string_view precision = adapters ? own_.lora_precision : own_.precision;
    if (!precision.empty()) put(job_, "precision", precision, "");
    if (own_.optimizer.empty()) return;
    Json& said = job_["optimizer"];
    if (said.is_null()) said = Json{{"name", "adamw"}};
    if (said == "adamw") said = Json{{"name", said}};
    if (said.is_object() && said.value("name", Json("adamw")) == "adamw")
      put(said, "implementation", own_.optimizer, "optimizer.");
  }

  void several(Json& work, const AlgorithmDescription& algorithm) {
    const Json models = work.value("models", Json::object());
    if (!models.is_object()) return;
    if (own_.judges_by_function && algorithm.needs_reward && !models.contains("reward"))
      put(work, "rewards", "function", "workload.");
    if (name_ == "megatron" && own_.scores_entropy && !work.contains("entropy"))
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

  void engine(Json& work) {
    if (own_.always_has_engine && !work.contains("hybrid_engine"))
      put(work, "rollout", Json{{"engine", "vllm"}}, "workload.");
    const auto said = work.find("rollout");
    if (said == work.end() || !said->is_object()) return;
    const bool sglang = said->value("engine", Json("vllm")) == "sglang";
    const EngineDefaults& usual = sglang ? own_.sglang : own_.vllm;
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
    if (name_ != "megatron" || !own_.asks_log_probabilities) return;
    fill("log_probabilities", true);
    if (said->value("tensor_parallel", Json(1)) != 1) fill("async_scheduling", false);
  }

  void reference(Json& work, const AlgorithmDescription& algorithm) {
    const bool copy = algorithm.has_reference && work.value("reference", Json("copy")) == "copy" &&
                      !(lora() && !work.contains("reference"));
    if (!copy) return;
    if (own_.reference_on_host) waits(work, "reference", Json{{"idle", "host"}});
    if (!own_.reference_shards_on_host || !name_.starts_with("fsdp")) return;
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

  const TrainerDefaults& own_;
  Json job_;
  std::int64_t world_;
  std::string name_;  ///< the framework's
  std::vector<std::string> assumed_;
};

}  // namespace

FilledJob with_trainer_defaults(Json job, std::int64_t world) {
  const std::string trainer = chosen(info_of(job_option_table(), "trainer"), job, "trainer");
  const auto own =
      std::ranges::find(kTrainerDefaults, std::string_view(trainer), &TrainerDefaults::trainer);
  if (own == kTrainerDefaults.end()) return {std::move(job), {}};
  return Filler(*own, std::move(job), world).fill();
}

}  // namespace shardplan
