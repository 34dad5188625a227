// The fields of jobs that generate, and of those with several models.
#include <nlohmann/json.hpp>

#include "frameworks/registry.h"
#include "job/fields.h"
#include "models/text.h"
#include "models/training_fields.h"

namespace shardplan::gui {
namespace {

bool generates_tokens(const Job& job) {
  return job.plan.workload.kind == WorkKind::inference;
}

bool has_prompts(const Job& job) {
  return generates_tokens(job) || (job.rlhf && generates(job.rlhf->algorithm));
}

/// How a job with prompts generates: a plan of its own where several models take part.
const Workload& generation_of(const Job& job) {
  return job.rlhf ? job.rlhf->generation.workload : job.plan.workload;
}

TrainingField number(const QString& label, const char* pointer, int most,
                     std::int64_t (*read)(const Job&), bool (*applies)(const Job&)) {
  return {
      .label = label,
      .pointer = pointer,
      .most = most,
      .read = [read](const Job& j) { return QVariant::fromValue(qint64{read(j)}); },
      .write = [pointer](Session& s,
                         const QVariant& v) { s.document().set(pointer, Json(v.toLongLong())); },
      .applies = applies};
}

constexpr int kMostTokens = 1 << 20;

/// What an algorithm cannot do without, in place of what another one had.
Json rlhf_workload(const Json& before, const std::string& algorithm) {
  Json work{{"kind", "rlhf"}, {"algorithm", algorithm}};
  for (const auto* key : {"micro_batch", "gradient_accumulation"})
    if (before.is_object() && before.contains(key)) work[key] = before.at(key);
  if (algorithm == "ppo" || algorithm == "grpo") {
    work["prompt_length"] = 256;
    work["new_tokens"] = 256;
  } else {
    work["sequence_length"] = 1024;
  }
  return work;
}

/// Every kind has a workload, frameworks and precisions of its own.
void write_workload(Session& session, Json work) {
  Json job = session.document().json();
  job["workload"] = std::move(work);
  for (const auto* key : {"framework", "precision", "parallel"}) job.erase(key);
  session.document().replace(std::move(job));
}

}  // namespace

TrainingField TrainingFields::kind() {
  return {.label = tr("Task"),
          .pointer = "/workload/kind",
          .choices = {{tr("training"), QStringLiteral("train")},
                      {tr("generation"), QStringLiteral("inference")},
                      {tr("reinforcement learning, preferences"), QStringLiteral("rlhf")}},
          .read =
              [](const Job& j) {
                return QVariant(generates_tokens(j) ? QStringLiteral("inference")
                                : j.rlhf            ? QStringLiteral("rlhf")
                                                    : QStringLiteral("train"));
              },
          .write =
              [](Session& s, const QVariant& v) {
                const std::string kind = v.toString().toStdString();
                const auto now = field_of(s.document().json(), "/workload/kind");
                if (now.value_or(Json("train")) == Json(kind)) return;
                write_workload(s, kind == "rlhf" ? rlhf_workload({}, "dpo") : Json{{"kind", kind}});
              }};
}

TrainingField TrainingFields::algorithm() {
  TrainingField f{.label = tr("Algorithm"), .pointer = "/workload/algorithm"};
  f.choices = {{tr("supervised fine-tuning"), QStringLiteral("sft")},
               {tr("reward model"), QStringLiteral("reward")},
               {QStringLiteral("DPO"), QStringLiteral("dpo")},
               {QStringLiteral("PPO"), QStringLiteral("ppo")},
               {QStringLiteral("GRPO"), QStringLiteral("grpo")}};
  f.read = [](const Job& j) { return QVariant(text(name_of(j.rlhf->algorithm))); };
  f.write = [](Session& s, const QVariant& v) {
    Json job = s.document().json();
    job["workload"] = rlhf_workload(job["workload"], v.toString().toStdString());
    s.document().replace(std::move(job));
  };
  f.applies = [](const Job& j) { return j.rlhf.has_value(); };
  return f;
}

TrainingField TrainingFields::batch() {
  return number(
      tr("Sequences"), "/workload/batch", 1 << 16,
      [](const Job& j) { return j.plan.workload.micro_batch; }, generates_tokens);
}

TrainingField TrainingFields::prompt_length() {
  return number(
      tr("Prompt length"), "/workload/prompt_length", kMostTokens,
      [](const Job& j) { return generation_of(j).sequence_length; }, has_prompts);
}

TrainingField TrainingFields::new_tokens() {
  return number(
      tr("New tokens"), "/workload/new_tokens", kMostTokens,
      [](const Job& j) { return generation_of(j).generation.new_tokens; }, has_prompts);
}

TrainingField TrainingFields::weights() {
  TrainingField f{.label = tr("Weights"), .pointer = "/workload/quantization"};
  for (const std::string& name : quantization_names(kWeightStore))
    f.choices.push_back({name == "none" ? tr("as computed") : text(name), text(name)});
  f.read = [](const Job& j) { return QVariant(text(name_of(j.plan.workload.generation.weights))); };
  f.write = [](Session& s, const QVariant& v) {
    s.document().set("/workload/quantization", Json(v.toString().toStdString()));
  };
  // Formats of DeepSpeed's own inference engines are not modelled.
  f.applies = [](const Job& j) {
    return generates_tokens(j) && traits_of(j.plan).quantizes_generation;
  };
  return f;
}

TrainingField TrainingFields::cache_type() {
  return {.label = tr("KV cache"),
          .pointer = "/workload/kv_cache_dtype",
          .choices = {{tr("as computed"), QStringLiteral("auto")},
                      {QStringLiteral("fp8"), QStringLiteral("fp8")}},
          .read =
              [](const Job& j) {
                return QVariant(j.plan.workload.generation.fp8_cache ? QStringLiteral("fp8")
                                                                     : QStringLiteral("auto"));
              },
          .write =
              [](Session& s, const QVariant& v) {
                s.document().set("/workload/kv_cache_dtype", Json(v.toString().toStdString()));
              },
          .applies =
              [](const Job& j) {
                return generates_tokens(j) && !j.plan.workload.generation.injection;
              }};
}

TrainingField TrainingFields::weights_place() {
  return {.label = tr("Weights are kept"),
          .pointer = "/framework/offload_param",
          .choices = {{tr("on the GPUs"), QStringLiteral("none")},
                      {tr("on the host"), QStringLiteral("cpu")},
                      {tr("on NVMe"), QStringLiteral("nvme")}},
          .read =
              [](const Job& j) {
                const ZeroOptions& zero = j.plan.framework.deepspeed.zero;
                return QVariant(text(name_of(zero.offload_param.device)));
              },
          .write =
              [](Session& s, const QVariant& v) {
                Json job = s.document().json();
                if (!field_of(job, "/framework/name"))
                  set_field(job, "/framework/name", "deepspeed");
                set_field(job, "/framework/offload_param", Json(v.toString().toStdString()));
                s.document().replace(std::move(job));
              },
          .applies =
              [](const Job& j) {
                return generates_tokens(j) && zero_options(j.plan) != nullptr &&
                       !j.plan.workload.generation.injection && !j.ds_config.is_object();
              }};
}

}  // namespace shardplan::gui
