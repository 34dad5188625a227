#include "models/training_fields.h"

#include <nlohmann/json.hpp>

#include "job/fields.h"
#include "load/framework.h"
#include "models/text.h"
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

bool is_deepspeed(const Job& job) {
  return job.plan.framework.kind == FrameworkKind::deepspeed;
}

bool has_config(const Session& s) {
  return field_of(s.document().json(), "/framework/ds_config").has_value();
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
              }};
}

TrainingField TrainingFields::sequence_length() {
  return {.label = tr("Sequence length"),
          .pointer = "/workload/sequence_length",
          .most = 1 << 20,
          .read = [](const Job& j) { return QVariant::fromValue(j.plan.workload.sequence_length); },
          .write = write_to("/workload/sequence_length")};
}

TrainingField TrainingFields::gpus() {
  return {.label = tr("GPUs"),
          .pointer = "/cluster",
          .most = 4096,
          .read = [](const Job& j) { return QVariant::fromValue(j.plan.cluster.world()); },
          .write =
              [](Session& s, const QVariant& v) {
                s.change_plan([&](Plan& p) { set_gpus(p, v.toLongLong()); });
              }};
}

TrainingField TrainingFields::stage() {
  TrainingField f{.label = tr("ZeRO stage"), .pointer = "/framework/zero_stage"};
  for (int stage = 0; stage <= 3; ++stage) f.choices.push_back({QString::number(stage), stage});
  f.read = [](const Job& j) { return QVariant(j.plan.framework.deepspeed.zero.stage); };
  f.write = [](Session& s, const QVariant& v) {
    s.change_plan([&](Plan& p) { set_zero_stage(p, v.toInt()); });
  };
  f.applies = is_deepspeed;
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
          .applies = is_deepspeed};
}

TrainingField TrainingFields::checkpointing() {
  return {.label = tr("Checkpointing"),
          .pointer = "/checkpointing",
          .choices = {{tr("none"), QStringLiteral("none")},
                      {tr("selective"), QStringLiteral("selective")},
                      {tr("every block"), QStringLiteral("full")}},
          .read = [](const Job& j) { return QVariant(text(name_of(j.plan.checkpointing))); },
          .write = write_to("/checkpointing")};
}

TrainingField TrainingFields::framework() {
  return {.label = tr("Framework"),
          .pointer = "/framework/name",
          .choices = {{tr("plain PyTorch"), QStringLiteral("single")},
                      {QStringLiteral("DDP"), QStringLiteral("ddp")},
                      {QStringLiteral("FSDP2"), QStringLiteral("fsdp2")},
                      {QStringLiteral("DeepSpeed"), QStringLiteral("deepspeed")},
                      {tr("shardplan-validate's engine"), QStringLiteral("native")}},
          .read = [](const Job& j) { return QVariant(text(name_of(j.plan.framework.kind))); },
          .write =
              [](Session& s, const QVariant& v) {
                // Precision names differ between frameworks: each has a default of its own.
                Json job = s.document().json();
                job["framework"] = Json{{"name", v.toString().toStdString()}};
                job.erase("precision");
                s.document().replace(std::move(job));
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
          }};
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
          .applies = [](const Job& j) { return j.plan.workload.lora.has_value(); }};
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
          }};
}

TrainingField TrainingFields::precision() {
  TrainingField f{.label = tr("Precision"), .pointer = "/precision"};
  for (const auto* name :
       {"bf16-master", "bf16-autocast", "bf16-pure", "fp16-master", "fp16-autocast", "fp32"})
    f.choices.push_back({QString::fromLatin1(name), QString::fromLatin1(name)});
  f.read = [](const Job& j) { return QVariant(text(j.plan.precision.name)); };
  f.write = [](Session& s, const QVariant& v) {
    if (has_config(s)) return;  // the ds_config decides
    s.document().set("/precision", json_of(v));
  };
  return f;
}

TrainingField TrainingFields::optimizer() {
  TrainingField f{.label = tr("Optimizer"), .pointer = "/optimizer/name"};
  constexpr std::array kKinds{
      OptimizerKind::adamw,   OptimizerKind::adam,       OptimizerKind::sgd,
      OptimizerKind::adagrad, OptimizerKind::adafactor,  OptimizerKind::lion,
      OptimizerKind::lamb,    OptimizerKind::adamw_8bit, OptimizerKind::muon};
  constexpr std::array kNames{"adamw", "adam", "sgd",        "adagrad", "adafactor",
                              "lion",  "lamb", "adamw_8bit", "muon"};
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    f.choices.push_back({text(optimizer_word(kKinds[i])), QString::fromLatin1(kNames[i])});
  f.read = [kKinds, kNames](const Job& j) {
    for (std::size_t i = 0; i < kKinds.size(); ++i)
      if (kKinds[i] == j.plan.optimizer.kind) return QVariant(QString::fromLatin1(kNames[i]));
    return QVariant();
  };
  f.write = write_to("/optimizer/name");
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
          .write = write_to("/loss")};
}

std::vector<TrainingField> TrainingFields::all() {
  return {method(),    lora_rank(), sequence_length(), micro_batch(), accumulation(),
          optimizer(), precision(), checkpointing(),   attention(),   loss(),
          framework(), stage(),     offload()};
}

}  // namespace shardplan::gui
