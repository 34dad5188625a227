#include <fmt/format.h>

#include <algorithm>

#include "optimizers/description.h"
#include "render/describe.h"
#include "report/field_origins.h"
#include "report/plan_words.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

class Fields {
 public:
  Fields(std::string id, Text caption)
      : table_{std::move(id), std::move(caption), {{"field"}, {"value"}, {"origin"}}, {}} {}

  void add(const std::string& id, Cell value, Source source, Text origin) {
    if (auto* quantity = std::get_if<Quantity>(&value)) quantity->source = source;
    table_.rows.push_back({id, {message("field." + id), std::move(value), std::move(origin)}});
  }
  Table table() { return std::move(table_); }

 private:
  Table table_;
};

/// The fields of a job, each with who said it.
class JobFields {
 public:
  JobFields(const Findings& findings, Text caption)
      : origins_(findings), fields_("job", std::move(caption)) {}

  /// What the job's text may say at `pointer`; its list of what it left open calls it `name`.
  void add(const std::string& id, Cell value, const char* pointer, std::string_view name = "") {
    if (name.empty()) name = pointer + 1;
    const bool assumed = origins_.assumed(pointer, name);
    fields_.add(id, std::move(value), assumed ? Source::assumed : Source::exact,
                origins_.of(pointer, name));
  }
  /// What no job can leave out.
  void add_given(const std::string& id, Cell value) {
    fields_.add(id, std::move(value), Source::exact, message("origin.given"));
  }
  /// What follows from other fields.
  void add_computed(const std::string& id, Cell value) {
    fields_.add(id, std::move(value), Source::exact, message("origin.computed"));
  }
  Table table() { return fields_.table(); }

 private:
  FieldOrigins origins_;
  Fields fields_;
};

/// A field of the machine: the catalogue's, or assumed.
void add_machine(Fields& fields, const std::string& id, Cell value, Source source) {
  fields.add(id, std::move(value), source,
             message(source == Source::assumed ? "origin.assumed" : "origin.catalogue"));
}

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

Quantity parameters(std::int64_t n) {
  return {n, Unit::parameters};
}

void add_model(JobFields& fields, const Job& job) {
  fields.add_given("model", model_name(job.model));
  fields.add_computed("parameters", count(job.model.parameter_count()));
}

void add_attention(JobFields& fields, const Plan& p) {
  fields.add("attention",
             message(p.attention == AttentionKind::eager ? "attention.eager"
                     : p.calls_flash_attn()              ? "attention.flash_attn"
                                                         : "attention.sdpa"),
             "/attention");
}

/// What one training step has, of one model or of several.
void add_step(JobFields& fields, const Job& job) {
  const Plan& p = job.plan;
  const Workload& w = p.workload;
  fields.add("precision", p.precision.name, "/precision");
  fields.add("optimizer", std::string(p.optimizer.kind->words), "/optimizer");
  fields.add("micro_batch", count(w.micro_batch), "/workload/micro_batch", "micro-batch");
  fields.add("sequence_length", count(w.sequence_length), "/workload/sequence_length",
             "sequence length");
  if (w.target_length > 0)
    fields.add("target_length", count(w.target_length), "/workload/target_length");
  fields.add("accumulation", count(w.gradient_accumulation), "/workload/gradient_accumulation");
  fields.add_computed("global_batch",
                      count(checked_mul(w.gradient_accumulation, p.samples_at_once())));
  fields.add("checkpointing", checkpointing_words(p), "/checkpointing");
  add_attention(fields, p);
}

void add_training(JobFields& fields, const Job& job) {
  const Plan& p = job.plan;
  add_model(fields, job);
  if (job.model.trainable_count() != job.model.parameter_count())
    fields.add_computed("trainable", parameters(job.model.trainable_count()));
  fields.add("method", method_words(p.workload), "/workload/method");
  fields.add("framework", framework_words(p), "/framework");
  if (!p.parallel.only_data()) fields.add("degrees", degree_words(p), "/parallel");
  if (p.parallel.pipeline > 1)
    fields.add("schedule", std::string(name_of(p.parallel.schedule)), "/parallel/schedule");
  add_step(fields, job);
}

void add_generation(JobFields& fields, const Job& job) {
  const Plan& p = job.plan;
  const Generation& g = p.workload.generation;
  add_model(fields, job);
  fields.add("framework", framework_words(p), "/framework");
  fields.add("precision", p.precision.name, "/precision");
  fields.add("weights", words_of(g.weights), "/workload/quantization", "quantization");
  fields.add("kv_cache",
             std::string(g.fp8_cache ? "fp8" : std::string_view(name_of(p.precision.compute))),
             "/workload/kv_cache_dtype");
  fields.add("batch", count(p.workload.micro_batch), "/workload/batch", "batch");
  fields.add("prompt_length", count(p.workload.sequence_length), "/workload/prompt_length",
             "prompt length");
  fields.add("new_tokens", count(g.new_tokens), "/workload/new_tokens", "new tokens");
  add_attention(fields, p);
}

void add_iteration(JobFields& fields, const Job& job) {
  const Rlhf& rlhf = *job.rlhf;
  fields.add_given("algorithm", message("algorithm." + std::string(name_of(rlhf.algorithm))));
  add_model(fields, job);
  fields.add("framework", framework_words(job.plan.framework), "/framework");
  add_step(fields, job);
  if (!generates(rlhf.algorithm)) return;
  const Workload& g = rlhf.generation.workload;
  fields.add("generation_batch", count(g.micro_batch), "/workload/generation_batch");
  fields.add("prompt_length", count(g.sequence_length), "/workload/prompt_length");
  fields.add("new_tokens", count(g.generation.new_tokens), "/workload/new_tokens");
  fields.add("hybrid_engine", message(rlhf.hybrid ? "word.on" : "word.off"),
             "/workload/hybrid_engine");
}

}  // namespace

Table job_table(const Findings& findings) {
  const Job& job = findings.job;
  const bool inference = job.plan.workload.kind == WorkKind::inference;
  const char* caption = job.rlhf    ? "table.job_rlhf"
                        : inference ? "table.job_inference"
                                    : "table.job";
  JobFields fields(findings, message(caption));
  if (job.rlhf)
    add_iteration(fields, job);
  else
    inference ? add_generation(fields, job) : add_training(fields, job);
  return fields.table();
}

Table machine_table(const Job& job) {
  Fields fields("machine", message("table.machine"));
  const Cluster& c = job.plan.cluster;
  const Gpu& gpu = c.gpu;
  const auto rate = [](double x, Unit unit) { return Quantity{x, unit}; };
  const auto sourced = [&](std::string_view field) {
    const auto bad = std::find(gpu.unverified.begin(), gpu.unverified.end(), field);
    return bad == gpu.unverified.end() ? Source::exact : Source::assumed;
  };
  add_machine(fields, "cluster", cluster_words(c), Source::exact);
  add_machine(fields, "gpu_memory", bytes(gpu.capacity.count(), Source::exact),
              sourced("memory_driver_mib"));
  add_machine(fields, "gpu_usable", bytes(gpu.usable.count(), Source::exact),
              gpu.usable_source == Source::assumed ? Source::assumed : Source::exact);
  if (gpu.memory_bandwidth)
    add_machine(fields, "memory_bandwidth", rate(*gpu.memory_bandwidth, Unit::bytes_per_second),
                sourced("memory_bandwidth_gbs"));
  if (gpu.peak[PeakRate::bf16])
    add_machine(fields, "peak_bf16", rate(*gpu.peak[PeakRate::bf16], Unit::flops),
                sourced("tflops_dense"));
  const Source links = c.interconnect_source == Source::assumed ? Source::assumed : Source::exact;
  if (c.gpus_per_node > 1)
    add_machine(fields, "intra_node", rate(c.intra_node_bandwidth, Unit::bytes_per_second), links);
  if (c.nodes > 1)
    add_machine(fields, "inter_node", rate(c.inter_node_bandwidth, Unit::bytes_per_second), links);
  if (c.host_memory)
    add_machine(fields, "host_memory", bytes(c.host_memory->count(), Source::exact), Source::exact);
  if (c.nvme && c.nvme->capacity.count() > 0)
    add_machine(fields, "nvme", bytes(c.nvme->capacity.count(), Source::exact), Source::exact);
  return fields.table();
}

Section job_section(const Findings& f) {
  return {"job", {job_table(f), machine_table(f.job)}};
}

}  // namespace shardplan::report
