#include "models/training_fields.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "frameworks/deepspeed/option_table.h"
#include "frameworks/registry.h"
#include "job/fields.h"
#include "models/option_field.h"
#include "models/text.h"
#include "options/tables.h"
#include "parallel/problem.h"
#include "questions/changes.h"
#include "render/describe.h"

namespace shardplan::gui {
namespace {

bool trains(const Job& job) {
  return job.plan.workload.kind == WorkKind::train;
}

bool trains_with_deepspeed(const Job& job) {
  return trains(job) && zero_options(job.plan) != nullptr;
}

bool does_not_generate(const Job& job) {
  return job.plan.workload.kind != WorkKind::inference;
}

/// An engine that serves runs all of it, without a framework.
bool is_served(const Job& job) {
  return job.plan.workload.generation.engine.has_value();
}

/// Sequences of a length of their own: not a prompt and what is generated after it.
bool has_sequences(const Job& job) {
  return does_not_generate(job) && !(job.rlhf && generates(job.rlhf->algorithm));
}

/// A ds_config whose fp16 and bf16 are no "auto", which stands for what the job says.
bool decides_precision(const Json& ds_config) {
  if (!ds_config.is_object()) return false;
  for (const auto* key : {"/bf16/enabled", "/fp16/enabled"})
    if (ds_config.value(Json::json_pointer(key), Json()) == Json("auto")) return false;
  return true;
}

/// Whether what divides the network can after a change. Plain PyTorch has no data parallelism.
bool can_be(const Job& job, const Plan& changed) {
  if (changed.cluster.world() % changed.parallel.model_ranks() != 0) return false;
  if (!traits_of(changed).data_parallel && changed.cluster.world() != changed.parallel.tensor)
    return false;
  return !division_problem(job.model, changed);
}

/// Where the optimizer states and the parameters are, as one choice.
struct OffloadPlaces {
  OffloadDevice optimizer, parameters;
  bool operator==(const OffloadPlaces&) const = default;
};
constexpr auto kGpu = OffloadDevice::none;
constexpr auto kHost = OffloadDevice::cpu;
constexpr auto kNvme = OffloadDevice::nvme;
constexpr std::array<OffloadPlaces, 9> kOffloadPlaces{{{kGpu, kGpu},
                                                       {kHost, kGpu},
                                                       {kHost, kHost},
                                                       {kNvme, kNvme},
                                                       {kGpu, kHost},
                                                       {kGpu, kNvme},
                                                       {kNvme, kGpu},
                                                       {kHost, kNvme},
                                                       {kNvme, kHost}}};
/// That most people choose between; the others are shown where a job has them.
constexpr int kUsualOffloads = 4;

int offload_of(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const OffloadPlaces now{zero.offload_optimizer.device, zero.offload_param.device};
  const auto* const at = std::find(kOffloadPlaces.begin(), kOffloadPlaces.end(), now);
  return static_cast<int>(at - kOffloadPlaces.begin());
}

void set_offload_choice(Plan& plan, int choice) {
  const OffloadPlaces& places = kOffloadPlaces.at(static_cast<std::size_t>(choice));
  const int stage = plan.framework.deepspeed.zero.stage;
  if (places.parameters != kGpu && stage < 3) set_zero_stage(plan, 3);
  if (places.optimizer != kGpu && places.parameters == kGpu && stage < 1) set_zero_stage(plan, 2);
  set_offload(plan, places.optimizer, places.parameters);
}

void set_gpus(Plan& plan, std::int64_t gpus) {
  constexpr std::int64_t kNode = 8;
  Cluster& c = plan.cluster;
  c.gpus_per_node = gpus <= kNode ? gpus : kNode;
  c.nodes = gpus <= kNode ? 1 : gpus / kNode;
}

}  // namespace

TrainingField TrainingFields::micro_batch() {
  TrainingField f = form_field(training_table(), "micro_batch", workload_of);
  f.most = 4096;
  f.write = [](Session& s, const QVariant& v) {
    s.change_plan([&](Plan& p) { p.workload.micro_batch = v.toLongLong(); });
  };
  f.applies = does_not_generate;
  return f;
}

TrainingField TrainingFields::sequence_length() {
  TrainingField f = form_field(training_table(), "sequence_length", workload_of);
  f.most = 1 << 20;
  f.applies = has_sequences;
  return f;
}

TrainingField TrainingFields::gpus() {
  return {.label = tr("GPUs"),
          .help = tr("Of all machines together: data is divided over them"),
          .pointer = "/cluster",
          .most = 4096,
          .read = [](const Job& j) { return QVariant::fromValue(j.plan.cluster.world()); },
          .write =
              [](Session& s, const QVariant& v) {
                s.change_plan([&](Plan& p) { set_gpus(p, v.toLongLong()); });
              },
          .applies =
              [](const Job& j) { return does_not_generate(j) || zero_options(j.plan) != nullptr; },
          .allows =
              [](const Job& j, const QVariant& v) {
                Plan changed = j.plan;
                set_gpus(changed, v.toLongLong());
                return can_be(j, changed);
              }};
}

TrainingField TrainingFields::stage() {
  TrainingField f = form_field(kDeepSpeedOptionTable, "zero_stage", framework_of);
  for (int stage = 0; stage <= 3; ++stage) f.choices.push_back({QString::number(stage), stage});
  f.read = [](const Job& j) { return QVariant(j.plan.framework.deepspeed.zero.stage); };
  f.write = [](Session& s, const QVariant& v) {
    s.change_plan([&](Plan& p) { set_zero_stage(p, v.toInt()); });
  };
  f.applies = trains_with_deepspeed;
  f.allows = [](const Job& j, const QVariant& v) {
    Plan changed = j.plan;
    set_zero_stage(changed, v.toInt());
    return can_be(j, changed);
  };
  return f;
}

TrainingField TrainingFields::offload() {
  return {.label = tr("Offload"),
          .help = tr("What is kept in the host's memory or on NVMe instead of the GPU"),
          .pointer = "/framework/offload_optimizer",
          .choices = {{tr("nothing"), 0},
                      {tr("optimizer to host"), 1},
                      {tr("all to host"), 2},
                      {tr("all to NVMe"), 3},
                      {tr("parameters to host"), 4},
                      {tr("parameters to NVMe"), 5},
                      {tr("optimizer to NVMe"), 6},
                      {tr("optimizer to host, parameters to NVMe"), 7},
                      {tr("optimizer to NVMe, parameters to host"), 8}},
          .read = [](const Job& j) { return QVariant(offload_of(j.plan)); },
          .write =
              [](Session& s, const QVariant& v) {
                s.change_plan([&](Plan& p) { set_offload_choice(p, v.toInt()); });
              },
          .applies = trains_with_deepspeed,
          .allows =
              [](const Job& j, const QVariant& v) {
                if (v.toInt() >= kUsualOffloads) return false;
                Plan changed = j.plan;
                set_offload_choice(changed, v.toInt());
                return can_be(j, changed);
              }};
}

TrainingField TrainingFields::checkpointing() {
  TrainingField f = form_field(job_option_table(), "checkpointing", plan_of);
  f.applies = does_not_generate;
  return f;
}

TrainingField TrainingFields::framework() {
  TrainingField f = form_field(framework_name_table(), "name", framework_of);
  f.write = [](Session& s, const QVariant& v) {
    // Precision names differ between frameworks: each has a default of its own.
    Json job = s.document().json();
    job["framework"] = Json{{"name", v.toString().toStdString()}};
    job.erase("precision");
    job.erase("parallel");  // and so do the degrees that each can divide by
    s.document().replace(std::move(job));
  };
  f.allows = [](const Job& j, const QVariant& v) {
    const auto kind = framework_named(v.toString().toStdString());
    return trains(j) || (kind && traits_of(*kind).generates);
  };
  f.excludes = is_served;
  return f;
}

TrainingField TrainingFields::method() {
  TrainingField f = form_field(training_table(), "method", workload_of);
  f.write = [](Session& s, const QVariant& v) {
    Json job = s.document().json();
    set_field(job, "/workload/method", json_of(v));
    set_field(job, "/workload/lora", nullptr);
    s.document().replace(std::move(job));
  };
  f.applies = trains;
  return f;
}

TrainingField TrainingFields::lora_rank() {
  TrainingField f = form_field(lora_table(), "rank", workload_of);
  f.most = 4096;
  f.applies = [](const Job& j) { return trains(j) && j.plan.workload.lora.has_value(); };
  return f;
}

TrainingField TrainingFields::accumulation() {
  TrainingField f = form_field(training_table(), "gradient_accumulation", workload_of);
  f.most = 65536;
  f.write = [](Session& s, const QVariant& v) {
    s.change_plan([&](Plan& p) { p.workload.gradient_accumulation = v.toLongLong(); });
  };
  f.applies = does_not_generate;
  return f;
}

TrainingField TrainingFields::precision() {
  TrainingField f = form_field(preset_option_table(), "precision", plan_of);
  f.read = [](const Job& j) { return QVariant(text(j.plan.precision.name)); };
  f.allows = [](const Job& j, const QVariant&) { return !decides_precision(j.ds_config); };
  return f;
}

TrainingField TrainingFields::optimizer() {
  TrainingField f = form_field(optimizer_table(), "name", optimizer_of);
  f.applies = does_not_generate;
  return f;
}

TrainingField TrainingFields::attention() {
  TrainingField f = form_field(job_option_table(), "attention", plan_of);
  f.excludes = is_served;
  return f;
}

TrainingField TrainingFields::sdpa_kernel() {
  TrainingField f = form_field(job_option_table(), "sdpa_kernel", plan_of);
  f.applies = [](const Job& j) { return j.plan.attention == AttentionKind::sdpa; };
  f.excludes = is_served;
  return f;
}

TrainingField TrainingFields::loss() {
  TrainingField f = form_field(job_option_table(), "loss", plan_of);
  f.applies = does_not_generate;
  return f;
}

std::vector<Choice> TrainingField::offered(const Job& job) const {
  std::vector<Choice> possible;
  for (const Choice& choice : choices)
    if (!allows || allows(job, choice.value) || choice.value == read(job))
      possible.push_back(choice);
  return possible;
}

/// A degree of parallelism; only those are offered that divide the GPUs and the network.
TrainingField TrainingFields::degree(Degree degree) {
  TrainingField f = form_field(parallel_table(), name_of(degree), plan_of);
  const std::string pointer = f.pointer;
  constexpr int kEvery = 64, kMost = 1024;  // above the first only powers of two
  for (int d = 1; d <= kMost; d = d < kEvery ? d + 1 : 2 * d)
    f.choices.push_back({QString::number(d), d});
  f.write = [pointer, degree](Session& s, const QVariant& v) {
    Json job = s.document().json();
    set_field(job, pointer, v.toInt() == 1 ? Json() : json_of(v));
    if (degree == Degree::tensor)  // these follow from it
      for (const auto* key : {"/parallel/expert_tensor", "/parallel/sequence_parallel"})
        set_field(job, key, nullptr);
    for (const auto* key : {"/parallel/data", "/parallel/stage_layers"})  // what is left
      set_field(job, key, nullptr);
    s.document().replace(std::move(job));
  };
  f.allows = [degree](const Job& j, const QVariant& v) {
    Plan changed = j.plan;
    changed.parallel.*member_of(degree) = v.toInt();
    changed.parallel.stage_layers.clear();
    apply_rules(parallel_table(), changed, [degree](std::string_view key) {
      return degree == Degree::tensor ? key == "expert_tensor" || key == "sequence_parallel"
                                      : degree == Degree::virtual_pipeline && key == "schedule";
    });
    return can_be(j, changed);
  };
  f.applies = [degree, choices = f.choices, allows = f.allows](const Job& j) {
    if (!trains(j) || j.ds_config.is_object()) return false;  // its keys say degrees too
    if (support_of(j.plan.framework.kind, degree) != Support::yes) return false;
    return std::count_if(choices.begin(), choices.end(),
                         [&](const Choice& c) { return allows(j, c.value); }) > 1;
  };
  return f;
}

std::vector<TrainingField> TrainingFields::all() {
  return {kind(),
          algorithm(),
          method(),
          lora_rank(),
          sequence_length(),
          batch(),
          prompt_length(),
          new_tokens(),
          micro_batch(),
          accumulation(),
          weights(),
          cache_type(),
          weights_place(),
          optimizer(),
          precision(),
          checkpointing(),
          attention(),
          sdpa_kernel(),
          loss(),
          framework(),
          stage(),
          offload(),
          degree(Degree::tensor),
          degree(Degree::pipeline),
          degree(Degree::virtual_pipeline),
          degree(Degree::sequence),
          degree(Degree::context),
          degree(Degree::expert)};
}

}  // namespace shardplan::gui
