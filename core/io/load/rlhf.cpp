#include "load/rlhf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "frameworks/registry.h"
#include "json/reader.h"
#include "load/apart_models.h"
#include "load/model.h"
#include "load/options.h"
#include "load/rlhf_checks.h"
#include "load/rollout.h"
#include "lowering/rlhf/lower.h"
#include "options/tables.h"
#include "parallel/shard.h"
#include "rollout/sizes.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// The workload's own keys; 0 where absent.
struct Lengths {
  std::int64_t micro_batch = 1, sequence = 0, prompt = 0, new_tokens = 0, generation_batch = 0;
  std::int64_t accumulation = 1;
  std::int64_t token_budget = 0, scoring_batch = 0, scoring_tokens = 0;
};

/// What a workload of training says too, as far as it is about the model that is trained.
constexpr std::array kOfActor{"method", "lora", "images", "image_tokens", "frozen", "tokens"};

class RlhfLoader {
 public:
  RlhfLoader(const Json& json, const std::string& file, const JobContext& context)
      : json_(json),
        file_(file),
        context_(context),
        work_(json.at("workload"), file, "workload"),
        models_(nullptr) {}

  Job load() {
    read_workload();
    if (apart().has(RoleKind::actor))
      work_.fail("models.actor", "its GPUs are those of the job", "no gpus of its own");
    Job job = load_role(RoleKind::actor);
    Rlhf rlhf;
    rlhf.scoring_batch = sizes_.scoring_batch;
    rlhf.scoring_tokens = sizes_.scoring_tokens;
    rlhf.algorithm = algorithm_->algorithm;
    rlhf.reference = reference_of(job.plan);
    add(rlhf, RoleKind::actor, job, true);
    if (algorithm_->has_critic) add(rlhf, RoleKind::critic, load_role(RoleKind::critic), true);
    if (rlhf.reference == ReferenceModel::copy)
      add(rlhf, RoleKind::reference, load_role(RoleKind::reference), false);
    const bool judges = (algorithm_->needs_reward && models_reward_) ||
                        (algorithm_->has_reward && says(RoleKind::reward));
    if (judges && !judged_in_engine())
      add(rlhf, RoleKind::reward, load_role(RoleKind::reward), false);
    if (algorithm_->generates) add_generation(rlhf, job);
    if (judges && judged_in_engine()) job.diagnostics.push_back(add_judge(rlhf));
    if (algorithm_->generates) check_prompt(work_, job, sizes_.prompt);
    rlhf.hybrid = hybrid_;
    check_frameworks(work_, rlhf);
    if (rlhf.rollout) job.diagnostics.push_back(check_rollout(work_, rlhf));
    if (rlhf.rollout)
      if (auto warning = sleeps_for_nobody(rlhf)) job.diagnostics.push_back(std::move(*warning));
    if (rlhf.rollout) note_engine(job);
    if (rlhf.rollout && rlhf.rollout->gpus) add_engine_gpus(job.plan, *rlhf.rollout);
    add_gpus_of(rlhf, job.plan);
    job.plan.updates = updates_of(rlhf);
    job.plan.workload.kind = WorkKind::rlhf;
    job.rlhf = std::move(rlhf);
    return job;
  }

 private:
  static void add_engine_gpus(Plan& plan, const RolloutEngine& engine) {
    const std::int64_t of_node = plan.cluster.gpus_per_node;
    plan.engine_gpus = *engine.gpus;
    plan.engine_nodes = engine.same_machines
                            ? static_cast<double>(*engine.gpus) / static_cast<double>(of_node)
                            : static_cast<double>(ceil_div(*engine.gpus, of_node));
  }

  void read_workload() {
    work_.choice("kind", {"rlhf"});
    const OptionInfo& option = info_of(rlhf_table(), "algorithm");
    const auto algorithm = read_as<Algorithm>(work_, option);
    if (!algorithm) {
      std::vector<std::string_view> known;
      for (const NamedValue& choice : option.choices) known.push_back(choice.name);
      work_.missing("algorithm", fmt::format("one of {}", fmt::join(known, ", ")));
    }
    algorithm_ = &description_of(*algorithm);
    said_reference_ = read_as<ReferenceModel>(work_, info_of(rlhf_table(), "reference"));
    const auto count = [&](const char* key) {
      return read_as<std::int64_t>(work_, info_of(rlhf_table(), key)).value_or(0);
    };
    sizes_.micro_batch = std::max<std::int64_t>(1, count("micro_batch"));
    sizes_.accumulation = std::max<std::int64_t>(1, count("gradient_accumulation"));
    read_budgets();
    if (algorithm_->generates) {
      sizes_.prompt = count("prompt_length");
      sizes_.new_tokens = count("new_tokens");
      sizes_.generation_batch = count("generation_batch");
      models_reward_ = read_as<int>(work_, info_of(rlhf_table(), "rewards")).value_or(1) != 0;
      for (const auto& [key, value] :
           {std::pair{"prompt_length", sizes_.prompt}, std::pair{"new_tokens", sizes_.new_tokens}})
        if (value == 0) work_.missing(key, "tokens of each sequence");
      if (sizes_.generation_batch == 0)
        sizes_.generation_batch = sizes_.micro_batch * sizes_.accumulation;
      sizes_.sequence = sizes_.prompt + sizes_.new_tokens;
      read_hybrid_engine();
      rollout_ = read_rollout(work_, sizes_.prompt, sizes_.new_tokens);
      if (rollout_ && hybrid_)
        work_.fail("rollout", "given beside a hybrid engine, which generates too", "one of both");
    } else {
      sizes_.sequence = count("sequence_length");
      if (sizes_.sequence == 0) work_.missing("sequence_length", "tokens of a sequence");
      sizes_.prompt = count("prompt_length");
      if (sizes_.prompt >= sizes_.sequence)
        work_.fail("prompt_length",
                   fmt::format("a prompt of {} tokens leaves no answer in sequences of {}",
                               sizes_.prompt, sizes_.sequence),
                   fmt::format("less than {}", sizes_.sequence));
    }
    for (const char* key : kOfActor) work_.find(key);
    models_ = work_.find("models");
    if (models_ != nullptr) check_models();
    work_.finish();
  }

  /// What only some trainers take, in tokens and in logits.
  void read_budgets() {
    const auto count = [&](const char* key) {
      return read_as<std::int64_t>(work_, info_of(rlhf_table(), key)).value_or(0);
    };
    sizes_.token_budget = count("token_budget");
    sizes_.scoring_batch = count("scoring_batch");
    sizes_.scoring_tokens = count("scoring_tokens");
    entropy_ =
        read_as<EntropyKind>(work_, info_of(rlhf_table(), "entropy")).value_or(EntropyKind::none);
    scoring_entropy_ =
        read_as<EntropyKind>(work_, info_of(rlhf_table(), "scoring_entropy")).value_or(entropy_);
  }

  /// verl's rearrange_micro_batches (verl/utils/seqlen_balancing.py) wants room for the longest.
  void check_budget(const char* key, std::int64_t budget, const Plan& plan) const {
    const std::int64_t divided = plan.parallel.sequence * plan.parallel.context;
    if (budget == 0 || checked_mul(budget, divided) >= sizes_.sequence) return;
    work_.fail(key,
               fmt::format("{} tokens on each of {} GPU{} hold no sequence of {}", budget, divided,
                           divided == 1 ? "" : "s", sizes_.sequence),
               fmt::format("at least {}", ceil_div(sizes_.sequence, divided)));
  }

  void read_hybrid_engine() {
    auto o = work_.object("hybrid_engine");
    if (!o) return;
    HybridEngine h;
    const bool enabled = o->boolean("enabled").value_or(true);
    read_options(*o, hybrid_table(), h);
    o->finish();
    if (enabled && h.max_out_tokens < sizes_.sequence)
      o->fail("max_out_tokens",
              fmt::format("{} holds no prompt of {} tokens and {} new ones", h.max_out_tokens,
                          sizes_.prompt, sizes_.new_tokens),
              fmt::format("at least {}", sizes_.sequence));
    if (enabled) hybrid_ = h;
  }

  /// Only models that the algorithm has, each an object.
  void check_models() {
    if (!models_->is_object())
      work_.fail("models", say("found {}", describe(*models_)), "an object");
    ObjectReader o(*models_, file_, "workload.models");
    o.object("actor");
    if (algorithm_->has_critic) o.object("critic");
    if (algorithm_->has_reference) o.object("reference");
    if (algorithm_->has_reward) o.object("reward");
    o.finish();
  }

  ApartModels apart() const { return {models_, file_}; }
  bool says(RoleKind kind) const { return models_ != nullptr && models_->contains(name_of(kind)); }

  /// The whole job as this model's: what its own entry says takes the place of what the job says.
  Json patched(RoleKind kind) const {
    Json job = json_;
    job.erase("workload");
    if (says(kind)) {
      Json own = models_->at(std::string(name_of(kind)));
      for (const char* key : {"idle", "token_budget", "engine", "gpus", "beside"}) own.erase(key);
      if (own.contains("model")) job.erase("model");  // another network, not a change of this one
      overlay(job, own);
      if (apart().has(kind)) job["cluster"] = apart().cluster_of(kind, job.at("cluster"));
    }
    return job;
  }

  /// As the job says, or as TRL does: under LoRA the base itself, without a copy.
  ReferenceModel reference_of(const Plan& actor) {
    if (!algorithm_->has_reference) {
      if (said_reference_)
        work_.fail("reference", fmt::format("{} has no reference", algorithm_->name),
                   "dpo, kto, ppo, grpo, gkd or asft");
      return ReferenceModel::none;
    }
    const bool lora = actor.workload.lora.has_value();
    if (!said_reference_)
      return lora && actor.trainer->shares_base && !says(RoleKind::reference)
                 ? ReferenceModel::base
                 : ReferenceModel::copy;
    const ReferenceModel said = *said_reference_;
    if (said == ReferenceModel::base && !lora)
      work_.fail("reference", "base, and the method is full: the base is trained", "copy");
    if (said == ReferenceModel::none && !algorithm_->reference_may_lack)
      work_.fail("reference", fmt::format("none, and {} asks one", algorithm_->name),
                 "copy, base or precomputed");
    if (said == ReferenceModel::precomputed && algorithm_->generates)
      work_.fail("reference",
                 fmt::format("precomputed, and {} scores what it generates", algorithm_->name),
                 "copy, base or none");
    if (said != ReferenceModel::copy && says(RoleKind::reference))
      work_.fail("models.reference", "given, and the reference is no model of its own",
                 "\"reference\": \"copy\", or nothing of it");
    return said;
  }

  Json trained(RoleKind kind) const {
    Json job = patched(kind);
    // Where answers are scored before training, no micro-batch of a step is a frozen model's; but
    // an interleaved schedule takes several at a time.
    const bool frozen = kind == RoleKind::reference || kind == RoleKind::reward;
    const bool interleaved =
        job.contains("parallel") && job.at("parallel").contains("virtual_pipeline");
    const bool one = frozen && scores_apart(*algorithm_) && !interleaved;
    Json work{{"kind", "train"},
              {"micro_batch", sizes_.micro_batch * algorithm_->sequences},
              {"sequence_length", sizes_.sequence},
              {"gradient_accumulation", one ? 1 : sizes_.accumulation}};
    const Json& whole = json_.at("workload");
    for (const char* key : kOfActor)
      if (kind == RoleKind::actor && whole.contains(key)) work[key] = whole.at(key);
    for (const char* key : {"images", "image_tokens"})
      if (whole.contains(key)) work[key] = whole.at(key);
    if (job.contains("workload")) overlay(work, job.at("workload"));
    job["workload"] = std::move(work);
    return job;
  }

  /// A teacher gives its logits; what is made of them is the student's loss.
  LossKind loss_of(RoleKind kind) const {
    if (algorithm_->head == RlhfHead::log_probabilities) return LossKind::log_probabilities;
    if (!compares_logits(*algorithm_)) return LossKind::cross_entropy;
    if (kind == RoleKind::reference) return LossKind::logits;
    return algorithm_->head == RlhfHead::anchored ? LossKind::anchored : LossKind::distillation;
  }

  JobContext context_of(RoleKind kind) const {
    JobContext context = context_;
    context.loss = loss_of(kind);
    context.sequences = algorithm_->sequences;
    context.entropy = kind == RoleKind::actor ? entropy_ : EntropyKind::none;
    context.whole_logits = (algorithm_->head == RlhfHead::logits && algorithm_->sequences > 1) ||
                           compares_logits(*algorithm_);
    context.scalar_head = kind == RoleKind::critic || kind == RoleKind::reward ||
                          algorithm_->head == RlhfHead::scalar;
    return context;
  }

  Job load_role(RoleKind kind) const {
    Job job = load_job(trained(kind), file_, context_of(kind));
    Plan& plan = job.plan;
    check_distillation(job);
    check_budget("token_budget", sizes_.token_budget, plan);
    check_budget("scoring_tokens", sizes_.scoring_tokens, plan);
    const bool asked = entropy_ != EntropyKind::none || scoring_entropy_ != EntropyKind::none;
    const bool parts = traits_of(plan).split == SplitStyle::megatron;
    if (asked && !parts && plan.trainer->kept_token_loss == nullptr)
      work_.fail("entropy", fmt::format("{}: its losses have none here", plan.trainer->words),
                 "trainer verl, framework megatron, or none");
    const std::int64_t divided = plan.parallel.sequence * plan.parallel.context;
    if (const std::int64_t budget = own_budget(kind); budget > 0)
      take_rows(plan.workload, checked_mul(budget, divided), divided);
    return job;
  }

  void check_distillation(const Job& job) const {
    if (!compares_logits(*algorithm_)) return;
    if (job.plan.loss == LossKind::fused_linear)
      work_.fail("algorithm", "a loss fused with the head, and all logits of both models are made",
                 "no loss beside it");
    if (job.plan.compile)
      work_.fail("algorithm", "distillation inside of a compiled step is not modelled",
                 "no compile beside it");
    if (traits_of(job.plan).split == SplitStyle::megatron)
      work_.fail("algorithm", "distillation under Megatron-LM is not modelled",
                 "another framework");
  }

  std::int64_t own_budget(RoleKind kind) const {
    const Json* own = says(kind) ? &models_->at(std::string(name_of(kind))) : nullptr;
    if (own == nullptr || !own->is_object() || !own->contains("token_budget"))
      return sizes_.token_budget;
    ObjectReader o(*own, file_, fmt::format("workload.models.{}", name_of(kind)));
    return read_as<std::int64_t>(o, info_of(rlhf_table(), "token_budget")).value_or(0);
  }

  void add(Rlhf& rlhf, RoleKind kind, Job job, bool trains) const {
    Role role{kind, std::move(job.model), std::move(job.plan), trains, Idle::gpu};
    role.plan.workload.unscored = sizes_.prompt;
    if (says(kind)) {
      ObjectReader o(models_->at(std::string(name_of(kind))), file_,
                     fmt::format("workload.models.{}", name_of(kind)));
      const auto idle = o.choice("idle", {"gpu", "parameters", "optimizer", "host"});
      for (const Idle one : {Idle::parameters, Idle::optimizer, Idle::host})
        if (idle == name_of(one)) role.idle = one;
    }
    if (apart().has(kind))
      apart().add(rlhf, std::move(role));
    else
      rlhf.roles.push_back(std::move(role));
  }

  void add_generation(Rlhf& rlhf, const Job& actor) const {
    if (scoring_entropy_ != entropy_) {
      JobContext context = context_of(RoleKind::actor);
      context.entropy = scoring_entropy_;
      rlhf.scorer = load_job(trained(RoleKind::actor), file_, context).model;
    }
    rlhf.generation = actor.plan;
    Workload& w = rlhf.generation.workload;
    w.kind = WorkKind::inference;
    w.micro_batch = sizes_.generation_batch;
    w.sequence_length = sizes_.prompt;
    w.generation.new_tokens = sizes_.new_tokens;
    rlhf.generator = generator_of(RoleKind::actor, actor.plan, rollout_.has_value());
    rlhf.rollout = rollout_;
    if (rlhf.rollout) {
      ask_for_sizes(*rlhf.rollout, *actor.plan.trainer);
      choose_sizes(*rlhf.rollout, actor.plan.cluster.gpu, actor.plan.trainer->starts_engine);
    }
    if (hybrid_) w.generation.injection = {hybrid_->max_out_tokens, 1};
  }

  /// What the trainer asks for where the job does not say it.
  void ask_for_sizes(RolloutEngine& engine, const TrainerDescription& trainer) const {
    if (trainer.starts_engines_over_ray && engine.tensor_parallel > 1 && !engine.schedules_ahead)
      engine.schedules_ahead = false;
    if (!engine.at().shares_gpus || trainer.engine_tokens == 0) return;
    if (engine.batched_tokens == 0) engine.batched_tokens = trainer.engine_tokens;
    if (engine.sequences == 0)
      engine.sequences = checked_mul(sizes_.generation_batch, engine.tensor_parallel);
  }

  /// A model with a cache, as its trainer runs it or as an engine of its own does, into whose
  /// weights adapters are merged.
  Model generator_of(RoleKind kind, Plan plan, bool in_engine) const {
    if (in_engine) {
      plan.framework = Framework{.kind = default_framework(1)};
      plan.workload.lora.reset();
    }
    BuildOptions options = build_options(plan);
    options.cached = true;
    if (in_engine) {
      options.images.per_sample = 0;  // whose tower runs before, and is counted
      options.state_kernels = StateKernels::fused;
    }
    const Json job = patched(kind);
    return load_model(job.at("model"), {file_, "model", context_.directory}, options);
  }

  bool judged_in_engine() const {
    const Json* own =
        says(RoleKind::reward) ? &models_->at(std::string(name_of(RoleKind::reward))) : nullptr;
    return own != nullptr && own->is_object() && own->contains("engine");
  }

  /// A reward model that an engine of its own runs. Its head of a value a token is counted as one
  /// of words, which takes more.
  Diagnostic add_judge(Rlhf& rlhf) const {
    ObjectReader own(models_->at(std::string(name_of(RoleKind::reward))), file_,
                     "workload.models.reward");
    if (apart().has(RoleKind::reward))
      own.fail("gpus", "an engine of the reward model on GPUs of its own is not modelled",
               "no engine, or no gpus of its own");
    if (!rlhf.rollout)
      own.fail("engine", "an engine for the reward model alone is not modelled",
               "a workload.rollout beside it");
    rlhf.judge =
        Judge{read_judge(own, sizes_.sequence),
              generator_of(RoleKind::reward, rlhf.roles.front().plan, true), rlhf.generation};
    const Plan& actor = rlhf.roles.front().plan;
    choose_sizes(rlhf.judge->engine, actor.cluster.gpu, actor.trainer->starts_engine);
    Diagnostic told = check_judge(own, *rlhf.judge);
    check_both_awake(own, *rlhf.rollout, rlhf.judge->engine);
    return told;
  }

  const Json& json_;
  std::string file_;
  const JobContext& context_;
  ObjectReader work_;
  const Json* models_;
  const AlgorithmDescription* algorithm_ = nullptr;
  std::optional<ReferenceModel> said_reference_;
  EntropyKind entropy_ = EntropyKind::none, scoring_entropy_ = EntropyKind::none;
  bool models_reward_ = true;
  Lengths sizes_;
  std::optional<HybridEngine> hybrid_;
  std::optional<RolloutEngine> rollout_;
};

}  // namespace

bool is_rlhf(const Json& job) {
  if (!job.is_object() || !job.contains("workload")) return false;
  const Json& workload = job.at("workload");
  return workload.is_object() && workload.contains("kind") && workload.at("kind") == "rlhf";
}

Job load_rlhf_job(const Json& job, const std::string& file, const JobContext& context) {
  return RlhfLoader(job, file, context).load();
}

}  // namespace shardplan
