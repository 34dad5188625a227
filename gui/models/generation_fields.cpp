// The fields of jobs that generate, and of those with several models.
#include <nlohmann/json.hpp>

#include "frameworks/deepspeed/option_table.h"
#include "frameworks/registry.h"
#include "job/fields.h"
#include "load/options.h"
#include "models/option_field.h"
#include "models/text.h"
#include "models/training_fields.h"
#include "options/tables.h"

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
  TrainingField f = form_field(kind_option_table(), "kind", workload_of);
  f.write = [](Session& s, const QVariant& v) {
    const std::string kind = v.toString().toStdString();
    const auto now = field_of(s.document().json(), "/workload/kind");
    if (now.value_or(Json("train")) == Json(kind)) return;
    write_workload(s, kind == "rlhf" ? rlhf_workload({}, "dpo") : Json{{"kind", kind}});
  };
  return f;
}

TrainingField TrainingFields::algorithm() {
  TrainingField f = form_field(info_of(rlhf_table(), "algorithm"), "workload");
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
  TrainingField f = form_field(generation_table(), "batch", generation_of);
  f.most = 1 << 16;
  f.applies = generates_tokens;
  f.open_words = tr("as many as there is room for");
  f.may_be_open = [](const Job& j) { return j.plan.workload.generation.engine.has_value(); };
  f.write = [pointer = f.pointer](Session& s, const QVariant& v) {
    s.document().set(pointer, v.toLongLong() == 0 ? Json() : json_of(v));
  };
  return f;
}

TrainingField TrainingFields::prompt_length() {
  TrainingField f = form_field(generation_table(), "prompt_length", generation_of);
  f.most = kMostTokens;
  f.applies = has_prompts;
  return f;
}

TrainingField TrainingFields::new_tokens() {
  TrainingField f = form_field(generation_table(), "new_tokens", generation_of);
  f.most = kMostTokens;
  f.applies = has_prompts;
  return f;
}

TrainingField TrainingFields::weights() {
  TrainingField f = form_field(generation_table(), "quantization", generation_of);
  // Formats of DeepSpeed's own inference engines are not modelled.
  f.applies = [](const Job& j) {
    return generates_tokens(j) && traits_of(j.plan).quantizes_generation;
  };
  return f;
}

TrainingField TrainingFields::cache_type() {
  TrainingField f = form_field(generation_table(), "kv_cache_dtype", generation_of);
  f.applies = [](const Job& j) {
    return generates_tokens(j) && !j.plan.workload.generation.injection;
  };
  return f;
}

TrainingField TrainingFields::weights_place() {
  TrainingField f = form_field(info_of(kDeepSpeedOptionTable, "offload_param"), "framework");
  f.read = [](const Job& j) {
    return QVariant(text(name_of(j.plan.framework.deepspeed.zero.offload_param.device)));
  };
  f.write = [](Session& s, const QVariant& v) {
    Json job = s.document().json();
    if (!field_of(job, "/framework/name")) set_field(job, "/framework/name", "deepspeed");
    set_field(job, "/framework/offload_param", Json(v.toString().toStdString()));
    s.document().replace(std::move(job));
  };
  f.applies = [](const Job& j) {
    return generates_tokens(j) && zero_options(j.plan) != nullptr &&
           !j.plan.workload.generation.injection && !j.ds_config.is_object();
  };
  return f;
}

}  // namespace shardplan::gui
