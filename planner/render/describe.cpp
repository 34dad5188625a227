#include "render/describe.h"

#include <fmt/format.h>

#include "base/format.h"
#include "frameworks/registry.h"
#include "optimizers/description.h"
#include "parallel/support.h"
#include "program/tape.h"
#include "render/english.h"
#include "render/table.h"
#include "report/words.h"

namespace shardplan {
namespace {

std::string framework_words(const Framework& framework) {
  return english(report::framework_words(framework));
}

std::string model_words(const Model& model) {
  const ModelFacts& facts = model.facts;
  return fmt::format("{} ({} parameters)", facts.name.empty() ? facts.model_type : facts.name,
                     format_parameters(model.parameter_count()));
}

/// How it generates, and on how much at a time.
std::string generation_lines(const Plan& p) {
  const Workload& w = p.workload;
  const Generation& g = w.generation;
  std::string how = g.injection       ? "inference with DeepSpeed-Inference's kernels"
                    : zero_options(p) ? "ZeRO-Inference, " + framework_words(p.framework)
                                      : "inference with transformers";
  if (g.injection && g.injection->tensor_parallel > 1)
    how += fmt::format(" over {} GPUs", g.injection->tensor_parallel);
  how += ", " + std::string(name_of(p.precision.params));
  if (g.weights != Quantization::none) how += fmt::format(", {}", format_of(g.weights).words);
  if (g.fp8_cache) how += ", fp8 KV cache";
  how += p.attention == AttentionKind::eager ? ", eager attention" : ", fused attention";
  const std::string batch =
      fmt::format("{} × ({} tokens of prompt + {} new)", format_count(w.micro_batch),
                  format_count(w.sequence_length), format_count(g.new_tokens));
  return wrapped(how, "  ", "    ") + wrapped(batch, "  ", "    ");
}

/// A line a model of an rlhf job.
std::string role_lines(const Rlhf& rlhf) {
  std::string text;
  for (const Role& role : rlhf.roles)
    text += wrapped(fmt::format("{}: {}, {} with {}, {}{}", english(report::words_of(role.kind)),
                                model_words(role.model),
                                !role.trains              ? "frozen"
                                : role.plan.workload.lora ? "LoRA"
                                                          : "trained",
                                framework_words(role.plan.framework), role.plan.precision.name,
                                role.idle_on_host ? ", on the host while idle" : ""),
                    "  ", "    ");
  const Workload& w = rlhf.roles.front().plan.workload;
  std::string batch = fmt::format("{}: micro-batch {} × {} tokens", name_of(rlhf.algorithm),
                                  format_count(w.micro_batch), format_count(w.sequence_length));
  if (generates(rlhf.algorithm)) {
    const Workload& g = rlhf.generation.workload;
    batch += fmt::format(", of which {} generated, {} sequences at once{}",
                         format_count(g.generation.new_tokens), format_count(g.micro_batch),
                         rlhf.hybrid ? ", hybrid engine" : "");
  }
  return text + wrapped(batch, "  ", "    ");
}

/// Where checkpointed blocks keep their inputs, if not whole on each GPU.
std::string saved_input_words(const Plan& p) {
  const SavedInput how = traits_of(p).saved_input(p);
  if (how.function == CheckpointFunction::torch) return "";
  std::string words;
  if (how.divided && how.ranks > 1) words += fmt::format(", inputs in {} parts", how.ranks);
  if (how.on_host) words += how.divided ? " on the host" : ", inputs on the host";
  return words;
}

/// Indented lines: how it is trained, and on how much at a time.
std::string plan_lines(const Plan& p) {
  const Workload& w = p.workload;
  const std::string method =
      w.lora ? fmt::format("LoRA of rank {} on {}", w.lora->rank, fmt::join(w.lora->targets, ", "))
             : "full fine-tuning";
  const std::string how = fmt::format("{} with {}, {}, {}", method, framework_words(p.framework),
                                      p.precision.name, p.optimizer.kind->words);
  std::string batch = fmt::format("micro-batch {} × {} tokens", format_count(w.micro_batch),
                                  format_count(w.sequence_length));
  if (w.gradient_accumulation > 1)
    batch += fmt::format(", {} accumulation steps", format_count(w.gradient_accumulation));
  batch += p.checkpointing == Checkpointing::full        ? ", every block checkpointed"
           : p.checkpointing == Checkpointing::selective ? ", selective checkpointing"
                                                         : ", no activation checkpointing";
  batch += saved_input_words(p);
  batch += p.attention == AttentionKind::eager ? ", eager attention" : ", fused attention";
  const std::string degrees = english(report::degree_words(p));
  return wrapped(how, "  ", "    ") + (degrees.empty() ? "" : wrapped(degrees, "  ", "    ")) +
         wrapped(batch, "  ", "    ");
}

}  // namespace

std::string verdict_word(Fit fit) {
  return english(report::words_of(fit));
}

Fit overall(const Verdict& v) {
  if (v.fits) return Fit::fits;
  return v.limited_by == "host" ? v.host.fit : v.limited_by == "nvme" ? v.nvme.fit : v.gpu.fit;
}

std::string phase_words(Phase phase) {
  return english(report::words_of(phase));
}

std::string category_words(Category category, const GpuAbilities& gpu) {
  return english(report::words_of(category, gpu));
}

std::string describe_cluster(const Cluster& c) {
  return english(report::cluster_words(c));
}

std::string subject(const Job& job) {
  const std::string lines = job.rlhf ? role_lines(*job.rlhf)
                            : job.plan.workload.kind == WorkKind::inference
                                ? generation_lines(job.plan)
                                : plan_lines(job.plan);
  return fmt::format("{} on {}\n{}", model_words(job.model), describe_cluster(job.plan.cluster),
                     lines);
}

std::string headline(const Estimate& e, const Job& job) {
  return fmt::format("{}: {}", verdict_word(overall(e.verdict)), subject(job));
}

}  // namespace shardplan
