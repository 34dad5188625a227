#include "models/training_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "frameworks/registry.h"
#include "job/fields.h"
#include "models/text.h"
#include "optimizers/registry.h"
#include "parallel/problem.h"
#include "questions/changes.h"
#include "render/describe.h"

namespace shardplan::gui {
namespace {

Json json_of(const QVariant& value) {
  if (value.typeId() == QMetaType::QString) return value.toString().toStdString();
  return value.toLongLong();
}

/// Writes the field of the job as it is.
auto write_to(const std::string& pointer) {
  return
      [pointer](Session& s, const QVariant& value) { s.document().set(pointer, json_of(value)); };
}

bool trains(const Job& job) {
  return job.plan.workload.kind == WorkKind::train;
}

bool trains_with_deepspeed(const Job& job) {
  return trains(job) && zero_options(job.plan) != nullptr;
}

bool does_not_generate(const Job& job) {
  return job.plan.workload.kind != WorkKind::inference;
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

/// Offload as one choice of the three that DeepSpeed users make.
int offload_of(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  if (zero.offload_param.device == OffloadDevice::nvme) return 3;
  if (zero.offload_param.device == OffloadDevice::cpu) return 2;
  return zero.offload_optimizer.device == OffloadDevice::none ? 0 : 1;
}

void set_offload_choice(Plan& plan, int choice) {
  constexpr auto kNone = OffloadDevice::none;
  constexpr auto kHost = OffloadDevice::cpu;
  constexpr auto kNvme = OffloadDevice::nvme;
  if (choice >= 2 && plan.framework.deepspeed.zero.stage < 3) set_zero_stage(plan, 3);
  if (choice == 1 && plan.framework.deepspeed.zero.stage < 1) set_zero_stage(plan, 2);
  const OffloadDevice device = choice == 3 ? kNvme : choice == 0 ? kNone : kHost;
  set_offload(plan, device, choice >= 2 ? device : kNone);
}

void set_gpus(Plan& plan, std::int64_t gpus) {
  constexpr std::int64_t kNode = 8;
  Cluster& c = plan.cluster;
  c.gpus_per_node = gpus <= kNode ? gpus : kNode;
  c.nodes = gpus <= kNode ? 1 : gpus / kNode;
}

}  // namespace

TrainingField TrainingFields::micro_batch() {
  return {.label = tr("Micro-batch"),
          .pointer = "/workload/micro_batch",
          .most = 4096,
          .read = [](const Job& j) { return QVariant::fromValue(j.plan.workload.micro_batch); },
          .write =
              [](Session& s, const QVariant& v) {
                s.change_plan([&](Plan& p) { p.workload.micro_batch = v.toLongLong(); });
              },
          .applies = does_not_generate};
}

TrainingField TrainingFields::sequence_length() {
  return {.label = tr("Sequence length"),
          .pointer = "/workload/sequence_length",
          .most = 1 << 20,
          .read = [](const Job& j) { return QVariant::fromValue(j.plan.workload.sequence_length); },
          .write = write_to("/workload/sequence_length"),
          .applies = has_sequences};
}

TrainingField TrainingFields::gpus() {
  return {.label = tr("GPUs"),
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
  TrainingField f{.label = tr("ZeRO stage"), .pointer = "/framework/zero_stage"};
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
          .pointer = "/framework/offload_optimizer",
          .choices = {{tr("nothing"), 0},
                      {tr("optimizer to host"), 1},
                      {tr("all to host"), 2},
                      {tr("all to NVMe"), 3}},
          .read = [](const Job& j) { return QVariant(offload_of(j.plan)); },
          .write =
              [](Session& s, const QVariant& v) {
                s.change_plan([&](Plan& p) { set_offload_choice(p, v.toInt()); });
              },
          .applies = trains_with_deepspeed,
          .allows =
              [](const Job& j, const QVariant& v) {
                Plan changed = j.plan;
                set_offload_choice(changed, v.toInt());
                return can_be(j, changed);
              }};
}

TrainingField TrainingFields::checkpointing() {
  return {.label = tr("Checkpointing"),
          .pointer = "/checkpointing",
          .choices = {{tr("none"), QStringLiteral("none")},
                      {tr("selective"), QStringLiteral("selective")},
                      {tr("every block"), QStringLiteral("full")}},
          .read = [](const Job& j) { return QVariant(text(name_of(j.plan.checkpointing))); },
          .write = write_to("/checkpointing"),
          .applies = does_not_generate};
}

TrainingField TrainingFields::framework() {
  return {.label = tr("Framework"),
          .pointer = "/framework/name",
          .choices = {{tr("plain PyTorch"), QStringLiteral("single")},
                      {QStringLiteral("DDP"), QStringLiteral("ddp")},
                      {QStringLiteral("FSDP2"), QStringLiteral("fsdp2")},
                      {QStringLiteral("DeepSpeed"), QStringLiteral("deepspeed")},
                      {QStringLiteral("Megatron-LM"), QStringLiteral("megatron")},
                      {tr("shardplan-validate's engine"), QStringLiteral("native")}},
          .read = [](const Job& j) { return QVariant(text(name_of(j.plan.framework.kind))); },
          .write =
              [](Session& s, const QVariant& v) {
                // Precision names differ between frameworks: each has a default of its own.
                Json job = s.document().json();
                job["framework"] = Json{{"name", v.toString().toStdString()}};
                job.erase("precision");
                job.erase("parallel");  // and so do the degrees that each can divide by
                s.document().replace(std::move(job));
              },
          .allows =
              [](const Job& j, const QVariant& v) {
                const bool few = v == QStringLiteral("single") || v == QStringLiteral("deepspeed");
                return few || trains(j);
              }};
}

TrainingField TrainingFields::method() {
  return {
      .label = tr("Method"),
      .pointer = "/workload/method",
      .choices = {{tr("full fine-tuning"), QStringLiteral("full")},
                  {QStringLiteral("LoRA"), QStringLiteral("lora")}},
      .read =
          [](const Job& j) {
            return QVariant(j.plan.workload.lora ? QStringLiteral("lora") : QStringLiteral("full"));
          },
      .write =
          [](Session& s, const QVariant& v) {
            Json job = s.document().json();
            set_field(job, "/workload/method", json_of(v));
            set_field(job, "/workload/lora", nullptr);
            s.document().replace(std::move(job));
          },
      .applies = trains};
}

TrainingField TrainingFields::lora_rank() {
  return {.label = tr("LoRA rank"),
          .pointer = "/workload/lora/rank",
          .most = 4096,
          .read =
              [](const Job& j) {
                return QVariant::fromValue(j.plan.workload.lora ? j.plan.workload.lora->rank : 0);
              },
          .write = write_to("/workload/lora/rank"),
          .applies = [](const Job& j) { return trains(j) && j.plan.workload.lora.has_value(); }};
}

TrainingField TrainingFields::accumulation() {
  return {
      .label = tr("Accumulation steps"),
      .pointer = "/workload/gradient_accumulation",
      .most = 65536,
      .read =
          [](const Job& j) { return QVariant::fromValue(j.plan.workload.gradient_accumulation); },
      .write =
          [](Session& s, const QVariant& v) {
            s.change_plan([&](Plan& p) { p.workload.gradient_accumulation = v.toLongLong(); });
          },
      .applies = does_not_generate};
}

TrainingField TrainingFields::precision() {
  TrainingField f{.label = tr("Precision"), .pointer = "/precision"};
  for (const auto* name :
       {"bf16-master", "bf16-autocast", "bf16-pure", "fp16-master", "fp16-autocast", "fp32"})
    f.choices.push_back({QString::fromLatin1(name), QString::fromLatin1(name)});
  f.read = [](const Job& j) { return QVariant(text(j.plan.precision.name)); };
  f.write = [](Session& s, const QVariant& v) { s.document().set("/precision", json_of(v)); };
  f.allows = [](const Job& j, const QVariant&) { return !decides_precision(j.ds_config); };
  return f;
}

TrainingField TrainingFields::optimizer() {
  TrainingField f{.label = tr("Optimizer"), .pointer = "/optimizer/name"};
  for (const OptimizerDescription* o : optimizers())
    f.choices.push_back({text(o->words), text(o->name)});
  f.read = [](const Job& j) { return QVariant(text(j.plan.optimizer.kind->name)); };
  f.write = write_to("/optimizer/name");
  f.applies = does_not_generate;
  return f;
}

TrainingField TrainingFields::attention() {
  return {.label = tr("Attention"),
          .pointer = "/attention",
          .choices = {{tr("fused (SDPA)"), QStringLiteral("sdpa")},
                      {tr("eager"), QStringLiteral("eager")}},
          .read =
              [](const Job& j) {
                return QVariant(j.plan.attention == AttentionKind::eager ? QStringLiteral("eager")
                                                                         : QStringLiteral("sdpa"));
              },
          .write = write_to("/attention")};
}

TrainingField TrainingFields::loss() {
  return {.label = tr("Loss"),
          .pointer = "/loss",
          .choices = {{tr("cross-entropy"), QStringLiteral("cross_entropy")},
                      {tr("fused with the head"), QStringLiteral("fused_linear")}},
          .read =
              [](const Job& j) {
                return QVariant(j.plan.loss == LossKind::fused_linear
                                    ? QStringLiteral("fused_linear")
                                    : QStringLiteral("cross_entropy"));
              },
          .write = write_to("/loss"),
          .applies = does_not_generate};
}

std::vector<Choice> TrainingField::offered(const Job& job) const {
  std::vector<Choice> possible;
  for (const Choice& choice : choices)
    if (!allows || allows(job, choice.value) || choice.value == read(job))
      possible.push_back(choice);
  return possible;
}

/// A degree of parallelism; only those are offered that divide the GPUs and the network.
TrainingField TrainingFields::degree(Degree degree, const QString& label) {
  const std::string pointer = "/parallel/" + std::string(name_of(degree));
  TrainingField f{.label = label, .pointer = pointer};
  constexpr int kEvery = 64, kMost = 1024;  // above the first only powers of two
  for (int d = 1; d <= kMost; d = d < kEvery ? d + 1 : 2 * d)
    f.choices.push_back({QString::number(d), d});
  f.read = [degree](const Job& j) { return QVariant(int(j.plan.parallel.*member_of(degree))); };
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
    if (degree == Degree::tensor) {
      const FrameworkTraits& framework = traits_of(j.plan);
      changed.parallel.expert_tensor = framework.divides_experts ? changed.parallel.tensor : 1;
      changed.parallel.sequence_parallel = framework.divides_tokens && changed.parallel.tensor > 1;
    }
    if (degree == Degree::virtual_pipeline)
      changed.parallel.schedule =
          v.toInt() > 1 ? PipelineSchedule::interleaved : PipelineSchedule::one_f_one_b;
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
          loss(),
          framework(),
          stage(),
          offload(),
          degree(Degree::tensor, tr("Tensor parallel")),
          degree(Degree::pipeline, tr("Pipeline stages")),
          degree(Degree::virtual_pipeline, tr("Chunks per stage")),
          degree(Degree::sequence, tr("Ulysses (sequence)")),
          degree(Degree::context, tr("Context parallel")),
          degree(Degree::expert, tr("Expert parallel"))};
}

}  // namespace shardplan::gui
