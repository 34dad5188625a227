#include <fmt/format.h>

#include <algorithm>

#include "optimizers/description.h"
#include "render/describe.h"
#include "report/plan_words.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

/// Whether the job left the field open: `assumed` says "micro-batch: 1".
bool is_assumed(const Job& job, std::string_view field) {
  return std::any_of(job.assumed.begin(), job.assumed.end(), [&](const std::string& a) {
    return a.size() > field.size() && a.substr(0, field.size()) == field && a[field.size()] == ':';
  });
}

class Fields {
 public:
  /// `given`: where a field comes from that is not assumed.
  Fields(std::string id, Text caption, Text given)
      : given_(std::move(given)),
        table_{std::move(id), std::move(caption), {{"field"}, {"value"}, {"origin"}}, {}} {}

  void add(const std::string& id, Cell value, Source source) {
    Cell origin = source == Source::assumed ? message("origin.assumed") : given_;
    if (auto* quantity = std::get_if<Quantity>(&value)) quantity->source = source;
    table_.rows.push_back({id, {message("field." + id), std::move(value), std::move(origin)}});
  }
  Table table() { return std::move(table_); }

 private:
  Text given_;
  Table table_;
};

Cell checkpointing_words(const Plan& plan) {
  const CheckpointShare& share = plan.checkpoint_share;
  switch (plan.checkpointing) {
    case Checkpointing::none:
      return message("checkpointing.none");
    case Checkpointing::selective:
      return message("checkpointing.selective");
    case Checkpointing::selective_op:
      return message("checkpointing.selective_op", {{"every", count(share.every)}});
    case Checkpointing::blocks:
      if (share.every > 0) return message("checkpointing.every", {{"every", count(share.every)}});
      return message("checkpointing.count", {{"count", count(share.count)}});
    case Checkpointing::full:
      break;
  }
  return message("checkpointing.full");
}

/// Whether the job said it.
Source given(const Job& job, std::string_view field) {
  return is_assumed(job, field) ? Source::assumed : Source::exact;
}

Quantity parameters(std::int64_t n) {
  return {n, Unit::parameters};
}

void add_model(Fields& fields, const Job& job) {
  fields.add("model", model_name(job.model), Source::exact);
  fields.add("parameters", count(job.model.parameter_count()), Source::exact);
}

void add_attention(Fields& fields, const Plan& p) {
  fields.add("attention",
             message(p.attention == AttentionKind::eager ? "attention.eager" : "attention.sdpa"),
             Source::exact);
}

/// What one training step has, of one model or of several.
void add_step(Fields& fields, const Job& job) {
  const Plan& p = job.plan;
  const Workload& w = p.workload;
  fields.add("precision", p.precision.name, given(job, "precision"));
  fields.add("optimizer", std::string(p.optimizer.kind->words), Source::exact);
  fields.add("micro_batch", count(w.micro_batch), given(job, "micro-batch"));
  fields.add("sequence_length", count(w.sequence_length), given(job, "sequence length"));
  if (w.target_length > 0) fields.add("target_length", count(w.target_length), Source::exact);
  fields.add("accumulation", count(w.gradient_accumulation), Source::exact);
  fields.add("global_batch", count(checked_mul(w.gradient_accumulation, p.samples_at_once())),
             given(job, "micro-batch"));
  fields.add("checkpointing", checkpointing_words(p), given(job, "checkpointing"));
  add_attention(fields, p);
}

void add_training(Fields& fields, const Job& job) {
  const Plan& p = job.plan;
  add_model(fields, job);
  if (job.model.trainable_count() != job.model.parameter_count())
    fields.add("trainable", parameters(job.model.trainable_count()), Source::exact);
  fields.add("method", method_words(p.workload), Source::exact);
  fields.add("framework", framework_words(p), given(job, "framework"));
  if (!p.parallel.only_data()) fields.add("degrees", degree_words(p), Source::exact);
  if (p.parallel.pipeline > 1)
    fields.add("schedule", std::string(name_of(p.parallel.schedule)), Source::exact);
  add_step(fields, job);
}

void add_generation(Fields& fields, const Job& job) {
  const Plan& p = job.plan;
  const Generation& g = p.workload.generation;
  add_model(fields, job);
  fields.add("framework", framework_words(p), given(job, "framework"));
  fields.add("precision", p.precision.name, given(job, "precision"));
  fields.add("weights", words_of(g.weights), Source::exact);
  fields.add("kv_cache",
             std::string(g.fp8_cache ? "fp8" : std::string_view(name_of(p.precision.compute))),
             Source::exact);
  fields.add("batch", count(p.workload.micro_batch), given(job, "batch"));
  fields.add("prompt_length", count(p.workload.sequence_length), given(job, "prompt length"));
  fields.add("new_tokens", count(g.new_tokens), given(job, "new tokens"));
  add_attention(fields, p);
}

void add_iteration(Fields& fields, const Job& job) {
  const Rlhf& rlhf = *job.rlhf;
  fields.add("algorithm", message("algorithm." + std::string(name_of(rlhf.algorithm))),
             Source::exact);
  add_model(fields, job);
  fields.add("framework", framework_words(job.plan.framework), given(job, "framework"));
  add_step(fields, job);
  if (!generates(rlhf.algorithm)) return;
  const Workload& g = rlhf.generation.workload;
  fields.add("generation_batch", count(g.micro_batch), Source::exact);
  fields.add("prompt_length", count(g.sequence_length), Source::exact);
  fields.add("new_tokens", count(g.generation.new_tokens), Source::exact);
  fields.add("hybrid_engine", message(rlhf.hybrid ? "word.on" : "word.off"), Source::exact);
}

}  // namespace

Table job_table(const Job& job) {
  const bool inference = job.plan.workload.kind == WorkKind::inference;
  const char* caption = job.rlhf    ? "table.job_rlhf"
                        : inference ? "table.job_inference"
                                    : "table.job";
  Fields fields("job", message(caption), message("origin.given"));
  if (job.rlhf)
    add_iteration(fields, job);
  else
    inference ? add_generation(fields, job) : add_training(fields, job);
  return fields.table();
}

Table machine_table(const Job& job) {
  Fields fields("machine", message("table.machine"), message("origin.catalogue"));
  const Cluster& c = job.plan.cluster;
  const Gpu& gpu = c.gpu;
  const auto rate = [](double x, Unit unit) { return Quantity{x, unit}; };
  const auto sourced = [&](std::string_view field) {
    const auto bad = std::find(gpu.unverified.begin(), gpu.unverified.end(), field);
    return bad == gpu.unverified.end() ? Source::exact : Source::assumed;
  };
  fields.add("cluster", cluster_words(c), Source::exact);
  fields.add("gpu_memory", bytes(gpu.capacity.count(), Source::exact),
             sourced("memory_driver_mib"));
  fields.add("gpu_usable", bytes(gpu.usable.count(), Source::exact),
             gpu.usable_source == Source::assumed ? Source::assumed : Source::exact);
  if (gpu.memory_bandwidth)
    fields.add("memory_bandwidth", rate(*gpu.memory_bandwidth, Unit::bytes_per_second),
               sourced("memory_bandwidth_gbs"));
  if (gpu.peak[PeakRate::bf16])
    fields.add("peak_bf16", rate(*gpu.peak[PeakRate::bf16], Unit::flops), sourced("tflops_dense"));
  const Source links = c.interconnect_source == Source::assumed ? Source::assumed : Source::exact;
  if (c.gpus_per_node > 1)
    fields.add("intra_node", rate(c.intra_node_bandwidth, Unit::bytes_per_second), links);
  if (c.nodes > 1)
    fields.add("inter_node", rate(c.inter_node_bandwidth, Unit::bytes_per_second), links);
  if (c.host_memory)
    fields.add("host_memory", bytes(c.host_memory->count(), Source::exact), Source::exact);
  if (c.nvme && c.nvme->capacity.count() > 0)
    fields.add("nvme", bytes(c.nvme->capacity.count(), Source::exact), Source::exact);
  return fields.table();
}

Section job_section(const Findings& f) {
  return {"job", {job_table(f.job), machine_table(f.job)}};
}

}  // namespace shardplan::report
