#include "render/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "render/table.h"

namespace shardplan {
namespace {

std::string deepspeed_words(const ZeroOptions& zero) {
  std::string text = fmt::format("DeepSpeed ZeRO-{}", zero.stage);
  const auto where = [](OffloadDevice d) { return d == OffloadDevice::cpu ? "the host" : "NVMe"; };
  if (zero.offload_optimizer.device != OffloadDevice::none)
    text += fmt::format(", optimizer on {}", where(zero.offload_optimizer.device));
  if (zero.offload_param.device != OffloadDevice::none)
    text += fmt::format(", parameters on {}", where(zero.offload_param.device));
  return text;
}

std::string framework_words(const Framework& framework) {
  switch (framework.kind) {
    case FrameworkKind::single:
      return "plain PyTorch";
    case FrameworkKind::ddp:
      return framework.ddp.zero_redundancy_optimizer ? "DDP with ZeroRedundancyOptimizer" : "DDP";
    case FrameworkKind::fsdp2:
      return "FSDP2";
    case FrameworkKind::native:
      return "the native engine";
    case FrameworkKind::megatron:
      return framework.megatron.distributed_optimizer ? "Megatron-LM with its distributed optimizer"
                                                      : "Megatron-LM";
    case FrameworkKind::deepspeed:
      break;
  }
  return deepspeed_words(framework.deepspeed.zero);
}

std::string model_words(const Model& model) {
  const ModelFacts& facts = model.facts;
  return fmt::format("{} ({} parameters)", facts.name.empty() ? facts.model_type : facts.name,
                     format_parameters(model.parameter_count()));
}

/// Indented lines: how it is trained, and on how much at a time.
std::string plan_lines(const Plan& p) {
  const Workload& w = p.workload;
  const std::string method =
      w.lora ? fmt::format("LoRA of rank {} on {}", w.lora->rank, fmt::join(w.lora->targets, ", "))
             : "full fine-tuning";
  const std::string how = fmt::format("{} with {}, {}, {}", method, framework_words(p.framework),
                                      p.precision.name, optimizer_word(p.optimizer.kind));
  std::string batch = fmt::format("micro-batch {} × {} tokens", format_count(w.micro_batch),
                                  format_count(w.sequence_length));
  if (w.gradient_accumulation > 1)
    batch += fmt::format(", {} accumulation steps", format_count(w.gradient_accumulation));
  batch += p.checkpointing == Checkpointing::full        ? ", every block checkpointed"
           : p.checkpointing == Checkpointing::selective ? ", selective checkpointing"
                                                         : ", no activation checkpointing";
  batch += p.attention == AttentionKind::eager ? ", eager attention" : ", fused attention";
  return wrapped(how, "  ", "    ") + wrapped(batch, "  ", "    ");
}

}  // namespace

std::string verdict_word(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return "FITS";
    case Fit::tight:
      return "TIGHT";
    case Fit::does_not_fit:
      return "DOES NOT FIT";
    case Fit::unknown:
      return "UNKNOWN";
  }
  return "";
}

Fit overall(const Verdict& v) {
  if (v.fits) return Fit::fits;
  return v.limited_by == "host" ? v.host.fit : v.limited_by == "nvme" ? v.nvme.fit : v.gpu.fit;
}

std::string_view optimizer_word(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw:
      return "AdamW";
    case OptimizerKind::adam:
      return "Adam";
    case OptimizerKind::sgd:
      return "SGD";
    case OptimizerKind::adagrad:
      return "Adagrad";
    case OptimizerKind::adafactor:
      return "Adafactor";
    case OptimizerKind::lion:
      return "Lion";
    case OptimizerKind::lamb:
      return "LAMB";
    case OptimizerKind::adamw_8bit:
      return "8-bit AdamW";
    case OptimizerKind::muon:
      return "Muon";
  }
  return "";
}

std::string_view phase_words(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "the forward pass";
    case Phase::backward:
      return "the backward pass";
    case Phase::step:
      return "the optimizer step";
  }
  return "";
}

std::string category_words(Category category) {
  if (category == Category::cuda_context) return "CUDA context";
  if (category == Category::nccl) return "NCCL";
  std::string text(name_of(category));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string describe_cluster(const Cluster& c) {
  if (c.nodes == 1) return fmt::format("{} × {}", c.gpus_per_node, c.gpu.name);
  return fmt::format("{} nodes of {} × {}", c.nodes, c.gpus_per_node, c.gpu.name);
}

std::string subject(const Job& job) {
  return fmt::format("{} on {}\n{}", model_words(job.model), describe_cluster(job.plan.cluster),
                     plan_lines(job.plan));
}

std::string headline(const Estimate& e, const Job& job) {
  return fmt::format("{}: {}", verdict_word(overall(e.verdict)), subject(job));
}

}  // namespace shardplan
