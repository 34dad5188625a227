#include "load/generation.h"

#include <fmt/format.h>

#include <algorithm>

#include "frameworks/registry.h"
#include "load/engine.h"
#include "load/options.h"
#include "options/tables.h"

namespace shardplan {
namespace {

/// A graph that keeps a KV cache.
bool keeps_cache(const Model& model) {
  return std::any_of(model.segments.begin(), model.segments.end(), [](const Segment& s) {
    const auto& ops = s.graph.ops();
    return std::any_of(ops.begin(), ops.end(),
                       [](const Op& op) { return op.kind == OpKind::cache; });
  });
}

/// DeepSpeed-Inference cuts heads, and has room for max_out_tokens.
void check_injection(ObjectReader& job, const Model& model, const Plan& plan) {
  const Workload& w = plan.workload;
  const KernelInjection& injection = *w.generation.injection;
  const std::int64_t heads = model.facts.attention_heads;
  if (heads % injection.tensor_parallel != 0) {
    std::int64_t nearest = injection.tensor_parallel;
    while (heads % nearest != 0) --nearest;
    job.fail("cluster",
             fmt::format("{} GPUs do not divide the model's {} attention heads",
                         injection.tensor_parallel, heads),
             fmt::format("{} GPUs", nearest));
  }
  const std::int64_t tokens = w.sequence_length + w.generation.new_tokens;
  if (tokens > injection.max_out_tokens)
    job.fail("framework.max_out_tokens",
             fmt::format("{} holds no prompt of {} tokens and {} new ones",
                         injection.max_out_tokens, w.sequence_length, w.generation.new_tokens),
             fmt::format("at least {}", tokens));
}

}  // namespace

Workload read_generation(ObjectReader& w) {
  Workload workload;
  workload.kind = WorkKind::inference;
  workload.micro_batch = workload.sequence_length = workload.generation.new_tokens = 0;  // open
  read_options(w, generation_table(), workload);
  Generation& g = workload.generation;
  g.engine = read_engine(w, "engine", serving_table());
  if (!g.engine && g.shared_prefix > 0)
    w.fail("shared_prefix", "is for an engine, which keeps it once", "with \"engine\"");
  return workload;
}

void check_generation(ObjectReader& job, const Model& model, const Plan& plan) {
  if (model.facts.encoder_decoder || !keeps_cache(model))
    job.fail("workload.kind",
             fmt::format("{} generates nothing token by token from a KV cache that is modelled",
                         model.facts.model_type),
             "a decoder such as llama-3.1-8b; or kind train");
  if (model.facts.has_state)
    job.fail("model_type", "layers with a state are described for training alone",
             "workload.kind train, or a network without them");
  const FrameworkTraits& framework = traits_of(plan);
  const Generation& g = plan.workload.generation;
  if (!framework.generates)
    job.fail("framework.name", fmt::format("'{}' does not run inference", framework.name.get()),
             "single (transformers) on one GPU, or deepspeed");
  if (g.injection) {
    check_injection(job, model, plan);
  } else if (!framework.quantizes_generation && g.weights != Quantization::none) {
    job.fail("workload.quantization", "quantized weights under ZeRO-Inference are not modelled",
             "framework single");
  } else if (format_of(g.weights).of_experts && !g.engine) {
    job.fail("workload.quantization", "experts alone in few bits are an engine's kernels",
             "workload.engine, or another format");
  }
}

}  // namespace shardplan
