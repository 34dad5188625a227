#include "questions/job_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "frameworks/registry.h"
#include "job/cluster_json.h"
#include "job/fields.h"
#include "questions/serving.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// "workload.quantization: int8"
std::string setting_of(const FieldEdit& edit) {
  std::string key = edit.pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return fmt::format("{}: {}", key,
                     edit.value.is_string() ? edit.value.get<std::string>() : edit.value.dump());
}

class Collector {
 public:
  void add(std::string what, std::string subject, std::vector<FieldEdit> fields,
           Sacrifice sacrifice = Sacrifice::nothing) {
    std::string how;
    for (const FieldEdit& edit : fields) {
      if (edit.value.is_null()) continue;  // makes room for what is said instead
      how += (how.empty() ? "" : ", ") + setting_of(edit);
    }
    changes_.push_back({std::move(what), std::move(how), nullptr, std::move(subject),
                        std::move(fields), sacrifice});
  }
  std::vector<Change> take() { return std::move(changes_); }

 private:
  std::vector<Change> changes_;
};

// ---- generation

void add_formats(Collector& out, const Plan& plan) {
  constexpr std::array kFormats{Quantization::fp8, Quantization::int8, Quantization::nf4,
                                Quantization::gptq, Quantization::awq};
  const Generation& now = plan.workload.generation;
  if (traits_of(plan).quantizes_generation)
    for (const Quantization format : kFormats)
      if (format != now.weights)
        out.add(fmt::format("weights in {}", name_of(format)), "weights",
                {{"/workload/quantization", name_of(format)}}, Sacrifice::number_format);
  if (!now.injection && !now.fp8_cache)
    out.add("KV cache in fp8", "cache", {{"/workload/kv_cache_dtype", "fp8"}},
            Sacrifice::number_format);
}

void add_generation_sizes(Collector& out, const Workload& w) {
  for (const std::int64_t batch : {w.micro_batch / 2, std::int64_t{1}}) {
    if (batch < 1 || batch >= w.micro_batch) continue;
    out.add(fmt::format("a batch of {}", batch), "batch", {{"/workload/batch", batch}},
            Sacrifice::samples);
    if (batch == 1) break;
  }
  constexpr std::int64_t kShortest = 256;
  if (w.sequence_length >= 2 * kShortest)
    out.add(fmt::format("prompts of {} tokens", w.sequence_length / 2), "prompt",
            {{"/workload/prompt_length", w.sequence_length / 2}}, Sacrifice::samples);
}

/// Nodes with so many times the GPUs, whose price is not known.
Cluster more_gpus(Cluster cluster, std::int64_t times) {
  cluster.gpus_per_node *= times;
  cluster.price_per_hour.reset();  // was that of fewer
  cluster.spot_price_per_hour.reset();
  return cluster;
}

/// DeepSpeed-Inference cuts each layer over all GPUs: over those that there are, or twice as many.
void add_tensor_parallel(Collector& out, const Job& job) {
  const Plan& plan = job.plan;
  const Workload& w = plan.workload;
  const std::int64_t tokens = w.sequence_length + w.generation.new_tokens;
  const auto& injection = w.generation.injection;
  if (injection && injection->max_out_tokens > tokens)
    out.add(fmt::format("a workspace for {} tokens", tokens), "workspace",
            {{"/framework/max_out_tokens", tokens}});
  const std::int64_t world = plan.cluster.world();
  const std::int64_t ranks = injection ? 2 * world : std::max<std::int64_t>(world, 2);
  const std::int64_t heads = job.model.facts.attention_heads;
  if (heads == 0 || heads % ranks != 0) return;
  std::vector<FieldEdit> fields;
  if (!injection)
    fields = {{"/framework",
               Json{{"name", "deepspeed"}, {"kernel_inject", true}, {"max_out_tokens", tokens}}},
              {"/workload/quantization", nullptr},
              {"/workload/kv_cache_dtype", nullptr}};
  if (ranks != world)
    fields.push_back({"/cluster", cluster_json(more_gpus(plan.cluster, ranks / world), false)});
  out.add(fmt::format("each layer over {} GPUs (DeepSpeed-Inference)", ranks), "tensor",
          std::move(fields), ranks != world ? Sacrifice::more_gpus : Sacrifice::nothing);
}

/// The engine's layers over more of the GPUs that a node has, or over twice as many as it has.
void add_engine_degree(Collector& out, const Job& job) {
  const Plan& plan = job.plan;
  const RolloutEngine& engine = *plan.workload.generation.engine;
  const std::int64_t own = engine.tensor_parallel;
  const auto add = [&](std::int64_t degree, std::vector<FieldEdit> fields, Sacrifice sacrifice) {
    fields.insert(fields.begin(), {"/workload/engine/tensor_parallel", degree});
    if (engine.expert_parallel > 1)
      fields.insert(fields.begin(), {"/workload/engine/expert_parallel", degree});
    out.add(fmt::format("each layer over {} GPUs", degree), "tensor", std::move(fields), sacrifice);
  };
  for (const std::int64_t degree : serving_degrees(job.model, plan))
    if (degree > own) add(degree, {}, Sacrifice::nothing);
  const std::int64_t more = 2 * plan.cluster.gpus_per_node;
  const std::int64_t heads = job.model.facts.attention_heads;
  if (own == plan.cluster.gpus_per_node && heads > 0 && heads % more == 0)
    add(more, {{"/cluster", cluster_json(more_gpus(plan.cluster, 2), false)}},
        Sacrifice::more_gpus);
}

/// Weights stay in the host's memory and stream through the GPU in every pass.
void add_streaming(Collector& out, const Plan& plan) {
  const ZeroOptions* zero = zero_options(plan);
  const bool streams = zero != nullptr && zero->offload_param.device != OffloadDevice::none;
  if (plan.workload.generation.injection || streams) return;
  out.add("weights on the host (ZeRO-Inference)", "tensor",
          {{"/framework", Json{{"name", "deepspeed"}, {"zero_stage", 3}, {"offload_param", "cpu"}}},
           {"/workload/quantization", nullptr}});
}

// ---- several models

/// Where the job says options of zero_optimization: in the short form of `framework`, or in a
/// ds_config inside the job. Nothing where a file says them.
class ZeroFields {
 public:
  explicit ZeroFields(const Json& written) {
    const auto config = field_of(written, "/framework/ds_config");
    is_inline_ = !config || config->is_object();
    in_config_ = config.has_value();
  }
  bool is_inline() const { return is_inline_; }
  FieldEdit stage(int stage) const {
    return in_config_ ? FieldEdit{"/framework/ds_config/zero_optimization/stage", stage}
                      : FieldEdit{"/framework/zero_stage", stage};
  }
  FieldEdit offload(const std::string& key) const {
    return in_config_
               ? FieldEdit{fmt::format("/framework/ds_config/zero_optimization/{}/device", key),
                           "cpu"}
               : FieldEdit{"/framework/" + key, "cpu"};
  }

 private:
  bool is_inline_ = false, in_config_ = false;
};

void add_states(Collector& out, const Rlhf& rlhf, const Json& written) {
  const Plan& plan = rlhf.roles.front().plan;
  const ZeroFields fields(written);
  if (zero_options(plan) == nullptr || !fields.is_inline()) return;
  const ZeroOptions& zero = *zero_options(plan);
  if (plan.cluster.world() > 1)
    for (int stage = std::max(zero.stage + 1, 1); stage <= 3; ++stage)
      out.add(fmt::format("ZeRO stage {}", stage), "stage", {fields.stage(stage)});
  if (zero.stage == 0) return;
  const FieldEdit optimizer = fields.offload("offload_optimizer");
  if (zero.offload_optimizer.device == OffloadDevice::none)
    out.add("optimizer states on the host", "offload", {optimizer});
  if (zero.stage == 3 && zero.offload_param.device == OffloadDevice::none)
    out.add("optimizer states and parameters on the host", "offload",
            {optimizer, fields.offload("offload_param")});
}

/// Models that wait for their turn: what is frozen, and the critic.
void add_idle(Collector& out, const Rlhf& rlhf) {
  std::vector<FieldEdit> frozen, all;
  for (const Role& role : rlhf.roles) {
    if (role.idle_on_host() || role.kind == RoleKind::actor) continue;
    all.push_back({fmt::format("/workload/models/{}/idle", name_of(role.kind)), "host"});
    if (!role.trains) frozen.push_back(all.back());
  }
  if (!frozen.empty()) out.add("frozen models on the host while idle", "idle", frozen);
  if (all.size() > frozen.size())
    out.add("critic and frozen models on the host while idle", "idle", all);
}

void add_passes(Collector& out, const Rlhf& rlhf) {
  const Plan& plan = rlhf.roles.front().plan;
  if (plan.checkpointing == Checkpointing::none)
    out.add("activation checkpointing on every block", "checkpointing",
            {{"/checkpointing", "full"}});
  const bool distils = compares_logits(rlhf.description());
  const bool own_loss = plan.trainer->token_loss != nullptr && plan.trainer->fused_head == nullptr;
  if (plan.loss != LossKind::fused_linear && !distils && !own_loss)
    out.add("a loss that never has all logits", "loss", {{"/loss", "fused_linear"}});
  if (!plan.workload.lora)
    out.add("LoRA of rank 16 in place of all the actor's parameters", "method",
            {{"/workload/method", "lora"}, {"/workload/lora", Json{{"rank", 16}}}},
            Sacrifice::trained_parameters);
  if (!rlhf.hybrid) return;
  if (!rlhf.hybrid->release_inference_cache)
    out.add("the workspace of generation given back before training", "workspace",
            {{"/workload/hybrid_engine/release_inference_cache", true}});
  if (rlhf.hybrid->pin_parameters && is_zero3(plan))
    out.add("parameters gathered a few layers at a time for generation", "pin",
            {{"/workload/hybrid_engine/pin_parameters", false}});
}

/// What an engine on the trainer's GPUs may leave it: all but its context while it sleeps, a part
/// of each layer, and what of the actor waits on the host meanwhile.
void add_rollout(Collector& out, const Rlhf& rlhf) {
  if (!rlhf.rollout || !rlhf.rollout->at().shares_gpus) return;
  const RolloutEngine& engine = *rlhf.rollout;
  if (engine.sleep_level == 0)
    out.add("the engine asleep while others work", "sleep", {{"/workload/rollout/sleep_level", 1}});
  if (rlhf.judge && rlhf.judge->engine.sleep_level == 0)
    out.add("the engine that judges asleep while others work", "judge",
            {{"/workload/models/reward/engine/sleep_level", 1}});
  const std::int64_t degree = 2 * engine.tensor_parallel;
  const Cluster& cluster = rlhf.roles.front().plan.cluster;
  if (degree <= cluster.gpus_per_node)
    out.add(fmt::format("the engine's layers over {} GPUs", degree), "tensor",
            {{"/workload/rollout/tensor_parallel", degree}});
  if (rlhf.roles.front().idle != Idle::gpu) return;
  out.add("the actor's optimizer states on the host while it does not train", "actor",
          {{"/workload/models/actor/idle", "optimizer"}});
  out.add("the actor on the host while it does not work", "actor",
          {{"/workload/models/actor/idle", "host"}});
}

/// Pairs count as one sample in the job and as two in its plan.
void add_rlhf_sizes(Collector& out, const Rlhf& rlhf, const Json& written) {
  const Workload& w = rlhf.roles.front().plan.workload;
  const auto said = [&](const char* pointer, std::int64_t otherwise) {
    const auto value = field_of(written, pointer);
    return value && value->is_number_integer() ? value->get<std::int64_t>() : otherwise;
  };
  const std::int64_t micro = said("/workload/micro_batch", 1);
  const std::int64_t accumulation = w.gradient_accumulation;
  if (micro % 2 == 0)
    out.add(fmt::format("micro-batch {} with {} accumulation steps", micro / 2, 2 * accumulation),
            "batch",
            {{"/workload/micro_batch", micro / 2},
             {"/workload/gradient_accumulation", 2 * accumulation}});
  if (!rlhf.generator) return;
  const std::int64_t generated = rlhf.generation.workload.micro_batch;
  const bool in_parts = accumulation % 2 == 0, whole = accumulation == 1 && micro % 2 == 0;
  if (generated % 2 != 0 || !(in_parts || whole)) return;
  std::vector<FieldEdit> half{{"/workload/generation_batch", generated / 2}};
  if (in_parts) half.push_back({"/workload/gradient_accumulation", accumulation / 2});
  if (whole) half.push_back({"/workload/micro_batch", micro / 2});
  out.add(fmt::format("{} sequences generated at a time", generated / 2), "batch", std::move(half));
}

}  // namespace

std::vector<Change> lighter_changes(const Job& job, const Json& written) {
  Collector out;
  if (job.rlhf) {
    add_states(out, *job.rlhf, written);
    add_idle(out, *job.rlhf);
    add_rollout(out, *job.rlhf);
    add_passes(out, *job.rlhf);
    add_rlhf_sizes(out, *job.rlhf, written);
  } else if (job.plan.workload.kind == WorkKind::inference) {
    add_formats(out, job.plan);
    add_generation_sizes(out, job.plan.workload);
    if (job.plan.workload.generation.engine) {
      add_engine_degree(out, job);
    } else {
      add_tensor_parallel(out, job);
      add_streaming(out, job.plan);
    }
  }
  return out.take();
}

Change EngineShare::changed(std::int64_t to) const {
  Collector out;
  out.add(
      fmt::format("{} {:.2f}", key, static_cast<double>(to) / 100), "share",
      {{fmt::format("/workload/{}/gpu_memory_utilization", block), static_cast<double>(to) / 100}});
  return out.take().front();
}

std::optional<EngineShare> engine_share(const Job& job) {
  const auto of = [](const RolloutEngine& engine, std::string_view block, bool alone) {
    return EngineShare{std::llround(engine.utilization * 100), block, engine.engine->share_key,
                       alone};
  };
  const auto shares = [](const RolloutEngine& engine) { return engine.at().shares_gpus; };
  // Of two engines on the same GPUs the one that takes more.
  const bool rollout = job.rlhf && job.rlhf->rollout && shares(*job.rlhf->rollout);
  if (job.rlhf && job.rlhf->judge && shares(job.rlhf->judge->engine)) {
    const RolloutEngine& judge = job.rlhf->judge->engine;
    if (!rollout || judge.utilization >= job.rlhf->rollout->utilization)
      return of(judge, "models/reward/engine", false);
  }
  if (rollout) return of(*job.rlhf->rollout, "rollout", false);
  const auto& serves = job.plan.workload.generation.engine;
  if (!job.rlhf && serves) return of(*serves, "engine", true);
  return std::nullopt;
}

}  // namespace shardplan
