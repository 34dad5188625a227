#include "load/rlhf.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "frameworks/registry.h"
#include "json/reader.h"
#include "load/model.h"
#include "load/options.h"
#include "options/tables.h"

namespace shardplan {
namespace {

struct Names {
  Algorithm algorithm;
  std::vector<RoleKind> frozen;  ///< beside the actor
  bool critic = false;
};

const std::vector<Names>& algorithms() {
  static const std::vector<Names> kAll{
      {Algorithm::sft, {}, false},
      {Algorithm::reward, {}, false},
      {Algorithm::dpo, {RoleKind::reference}, false},
      {Algorithm::ppo, {RoleKind::reference, RoleKind::reward}, true},
      {Algorithm::grpo, {RoleKind::reference, RoleKind::reward}, false},
  };
  return kAll;
}

/// The workload's own keys; 0 where absent.
struct Lengths {
  std::int64_t micro_batch = 1, sequence = 0, prompt = 0, new_tokens = 0, generation_batch = 0;
  std::int64_t accumulation = 1;
};

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
    Job job = load_job(trained(RoleKind::actor), file_, context_of(RoleKind::actor));
    Rlhf rlhf;
    rlhf.algorithm = names_->algorithm;
    add(rlhf, RoleKind::actor, job, true);
    if (names_->critic) add(rlhf, RoleKind::critic, load_role(RoleKind::critic), true);
    for (const RoleKind kind : names_->frozen)
      if (kind != RoleKind::reward || names_->critic || says(kind))
        add(rlhf, kind, load_role(kind), false);
    if (generates(rlhf.algorithm)) add_generation(rlhf, job);
    check_frameworks(rlhf);
    job.plan.workload.kind = WorkKind::rlhf;
    job.rlhf = std::move(rlhf);
    return job;
  }

 private:
  void read_workload() {
    work_.choice("kind", {"rlhf"});
    const OptionInfo& option = info_of(rlhf_table(), "algorithm");
    const auto algorithm = read_as<Algorithm>(work_, option);
    if (!algorithm) {
      std::vector<std::string_view> known;
      for (const NamedValue& choice : option.choices) known.push_back(choice.name);
      work_.missing("algorithm", fmt::format("one of {}", fmt::join(known, ", ")));
    }
    names_ = &*std::find_if(algorithms().begin(), algorithms().end(),
                            [&](const Names& n) { return n.algorithm == *algorithm; });
    const auto count = [&](const char* key) {
      return read_as<std::int64_t>(work_, info_of(rlhf_table(), key)).value_or(0);
    };
    sizes_.micro_batch = std::max<std::int64_t>(1, count("micro_batch"));
    sizes_.accumulation = std::max<std::int64_t>(1, count("gradient_accumulation"));
    if (generates(names_->algorithm)) {
      sizes_.prompt = count("prompt_length");
      sizes_.new_tokens = count("new_tokens");
      sizes_.generation_batch = count("generation_batch");
      for (const auto& [key, value] :
           {std::pair{"prompt_length", sizes_.prompt}, std::pair{"new_tokens", sizes_.new_tokens}})
        if (value == 0) work_.missing(key, "tokens of each sequence");
      if (sizes_.generation_batch == 0)
        sizes_.generation_batch = sizes_.micro_batch * sizes_.accumulation;
      sizes_.sequence = sizes_.prompt + sizes_.new_tokens;
      read_hybrid_engine();
    } else {
      sizes_.sequence = count("sequence_length");
      if (sizes_.sequence == 0) work_.missing("sequence_length", "tokens of a sequence");
    }
    work_.find("method");
    work_.find("lora");
    models_ = work_.find("models");
    if (models_ != nullptr) check_models();
    work_.finish();
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
    if (names_->critic) o.object("critic");
    for (const RoleKind kind : names_->frozen) o.object(name_of(kind));
    o.finish();
  }

  bool says(RoleKind kind) const { return models_ != nullptr && models_->contains(name_of(kind)); }

  /// The whole job as this model's: what its own entry says takes the place of what the job says.
  Json patched(RoleKind kind) const {
    Json job = json_;
    job.erase("workload");
    if (says(kind)) {
      Json own = models_->at(std::string(name_of(kind)));
      own.erase("idle");
      if (own.contains("model")) job.erase("model");  // another network, not a change of this one
      overlay(job, own);
    }
    return job;
  }

  /// Pairs are two sequences each.
  bool takes_pairs() const {
    return names_->algorithm == Algorithm::dpo || names_->algorithm == Algorithm::reward;
  }

  Json trained(RoleKind kind) const {
    Json job = patched(kind);
    Json work{{"kind", "train"},
              {"micro_batch", sizes_.micro_batch * (takes_pairs() ? 2 : 1)},
              {"sequence_length", sizes_.sequence},
              {"gradient_accumulation", sizes_.accumulation}};
    const Json& whole = json_.at("workload");
    for (const auto* key : {"method", "lora"})
      if (kind == RoleKind::actor && whole.contains(key)) work[key] = whole.at(key);
    if (job.contains("workload")) overlay(work, job.at("workload"));
    job["workload"] = std::move(work);
    return job;
  }

  JobContext context_of(RoleKind kind) const {
    JobContext context = context_;
    context.log_probabilities =
        names_->algorithm != Algorithm::sft && names_->algorithm != Algorithm::reward;
    context.scalar_head = kind == RoleKind::critic || kind == RoleKind::reward ||
                          names_->algorithm == Algorithm::reward;
    return context;
  }

  Job load_role(RoleKind kind) const { return load_job(trained(kind), file_, context_of(kind)); }

  void add(Rlhf& rlhf, RoleKind kind, Job job, bool trains) const {
    Role role{kind, std::move(job.model), std::move(job.plan), trains, false};
    if (says(kind)) {
      ObjectReader o(models_->at(std::string(name_of(kind))), file_,
                     fmt::format("workload.models.{}", name_of(kind)));
      role.idle_on_host = o.choice("idle", {"gpu", "host"}) == "host";
    }
    rlhf.roles.push_back(std::move(role));
  }

  void add_generation(Rlhf& rlhf, const Job& actor) const {
    rlhf.generation = actor.plan;
    Workload& w = rlhf.generation.workload;
    w.kind = WorkKind::inference;
    w.micro_batch = sizes_.generation_batch;
    w.sequence_length = sizes_.prompt;
    w.generation.new_tokens = sizes_.new_tokens;
    BuildOptions options = build_options(actor.plan);
    options.cached = true;
    const Json job = patched(RoleKind::actor);
    rlhf.generator = load_model(job.at("model"), {file_, "model", context_.directory}, options);
    rlhf.hybrid = hybrid_;
    if (hybrid_) w.generation.injection = {hybrid_->max_out_tokens, 1};
  }

  /// Programs that start out from different processes cannot be run in turn.
  void check_frameworks(const Rlhf& rlhf) const {
    for (const Role& role : rlhf.roles) {
      const FrameworkTraits& framework = traits_of(role.plan);
      if (!framework.runs_rlhf)
        work_.fail("kind",
                   fmt::format("rlhf with framework '{}' ({}) is not modelled",
                               framework.name.get(), name_of(role.kind)),
                   "single on one GPU, or deepspeed");
      if (!framework.has_hybrid_engine && hybrid_)
        work_.fail("hybrid_engine",
                   fmt::format("is DeepSpeed's, and the framework is {}", framework.name.get()),
                   "framework deepspeed");
    }
  }

  const Json& json_;
  std::string file_;
  const JobContext& context_;
  ObjectReader work_;
  const Json* models_;
  const Names* names_ = nullptr;
  Lengths sizes_;
  std::optional<HybridEngine> hybrid_;
};

}  // namespace

bool is_rlhf(const Json& job) {
  if (!job.is_object() || !job.contains("workload")) return false;
  const Json& workload = job.at("workload");
  return workload.is_object() && workload.contains("kind") && workload.at("kind") == "rlhf";
}

Job load_rlhf_job(const Json& job, const std::string& file, const JobContext& context) {
  for (const std::string_view key : {"trainer", "kernels"})
    if (job.contains(key) && job.at(key) != "loop" && job.at(key) != "torch")
      throw InputError({.file = file,
                        .key = std::string(key),
                        .message = "is estimated for training alone, not for rlhf",
                        .expected = "workload.kind train, or a job without it"});
  return RlhfLoader(job, file, context).load();
}

}  // namespace shardplan
