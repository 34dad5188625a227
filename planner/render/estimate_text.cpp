#include "render/estimate_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "load/framework.h"
#include "load/optimizer.h"
#include "render/table.h"
#include "save/estimate.h"

namespace shardplan {
namespace {

using Align = TextTable::Align;

std::string framework_text(const Plan& plan) {
  switch (plan.framework.kind) {
    case FrameworkKind::single:
      return "plain PyTorch";
    case FrameworkKind::ddp:
      return plan.framework.ddp.zero_redundancy_optimizer ? "DDP with ZeroRedundancyOptimizer"
                                                          : "DDP";
    case FrameworkKind::fsdp2:
      return "FSDP2";
    case FrameworkKind::native:
      return "the native engine";
    case FrameworkKind::deepspeed:
      break;
  }
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  std::string text = fmt::format("DeepSpeed ZeRO-{}", zero.stage);
  const auto where = [](OffloadDevice d) { return d == OffloadDevice::cpu ? "the host" : "NVMe"; };
  if (zero.offload_optimizer.device != OffloadDevice::none)
    text += fmt::format(", optimizer on {}", where(zero.offload_optimizer.device));
  if (zero.offload_param.device != OffloadDevice::none)
    text += fmt::format(", parameters on {}", where(zero.offload_param.device));
  return text;
}

std::string words(Category c) {
  std::string text(name_of(c));
  std::replace(text.begin(), text.end(), '_', ' ');
  if (c == Category::cuda_context) return "CUDA context";
  if (c == Category::nccl) return "NCCL";
  return text;
}

std::string explain(Category c, const Estimate& e, const Plan& plan) {
  const std::int64_t world = plan.cluster.world();
  const std::string trained = format_parameters(e.trainable_parameters);
  switch (c) {
    case Category::parameters:
      return fmt::format("the weights themselves, {} of them at {} bytes",
                         format_parameters(e.parameters), size_of(plan.precision.params));
    case Category::gradients:
      return fmt::format("one gradient of {} bytes for each of {} trained parameters",
                         size_of(plan.precision.gradients), trained);
    case Category::master_parameters:
      return fmt::format("an fp32 copy of the {} trained parameters for the optimizer", trained);
    case Category::optimizer_states:
      return fmt::format(
          "what {} remembers of {} trained parameters{}", name_of(plan.optimizer.kind), trained,
          world > 1 ? fmt::format(", split as the stage says over {} GPUs", world) : "");
    case Category::activations:
      return fmt::format("what {} layers keep of {} tokens for the backward pass{}", "all",
                         format_count(plan.workload.micro_batch * plan.workload.sequence_length),
                         plan.checkpointing == Checkpointing::full ? ", checkpointed" : "");
    case Category::logits_and_loss:
      return "the logits of every token over the whole vocabulary, in fp32 for the loss";
    case Category::gathered_parameters:
      return "parameters of other GPUs that are gathered while they are used";
    case Category::communication_buffers:
      return "buckets that gradients are reduced in";
    default:
      return "see docs/memory.md";
  }
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

std::string describe_cluster(const Cluster& c) {
  if (c.nodes == 1) return fmt::format("{} × {}", c.gpus_per_node, c.gpu.name);
  return fmt::format("{} nodes of {} × {}", c.nodes, c.gpus_per_node, c.gpu.name);
}

std::string describe_plan(const Job& job) {
  const Plan& p = job.plan;
  const Workload& w = p.workload;
  std::string method = "full fine-tuning";
  if (w.lora)
    method = fmt::format("LoRA of rank {} on {}", w.lora->rank, fmt::join(w.lora->targets, ", "));
  std::string text = fmt::format("{} with {}, {}, {}\nmicro-batch {} × {} tokens", method,
                                 framework_text(p), p.precision.name, name_of(p.optimizer.kind),
                                 w.micro_batch, format_count(w.sequence_length));
  if (w.gradient_accumulation > 1)
    text += fmt::format(", {} accumulation steps", w.gradient_accumulation);
  text += p.checkpointing == Checkpointing::full ? ", every block checkpointed"
                                                 : ", no activation checkpointing";
  text += p.attention == AttentionKind::eager ? ", eager attention" : ", fused attention";
  return text;
}

std::string resource_lines(const Estimate& e) {
  TextTable table({Align::left, Align::left, Align::left, Align::left});
  const std::int64_t spare = e.verdict.headroom_bytes;
  const std::string margin = spare >= 0 ? fmt::format("{} to spare", format_bytes(spare))
                                        : fmt::format("{} too much", format_bytes(-spare));
  table.add({"GPU", verdict_word(e.verdict.gpu.fit),
             fmt::format("{} of {}", format_bytes(e.device.point), format_bytes(e.usable_bytes)),
             fmt::format("{}; at most {} is expected", margin, format_bytes(e.device.upper))});
  const auto other = [&](const char* name, const ResourceVerdict& r, const char* unknown) {
    if (r.needed == 0) {
      table.add({name, "not used", "", ""});
    } else if (!r.available) {
      table.add({name, verdict_word(r.fit), format_bytes(r.needed) + " a node", unknown});
    } else {
      table.add({name, verdict_word(r.fit),
                 fmt::format("{} of {}", format_bytes(r.needed), format_bytes(*r.available)),
                 "a node"});
    }
  };
  other("host", e.verdict.host, "how much a node has is not known: host_memory_bytes says it");
  other("NVMe", e.verdict.nvme, "how much a node has is not known: nvme.bytes says it");
  return table.text();
}

std::string breakdown_bars(const Estimate& e) {
  std::vector<CategoryLine> lines;
  for (const CategoryLine& line : e.breakdown)
    if (line.at_peak > 0) lines.push_back(line);
  std::stable_sort(lines.begin(), lines.end(), [](const CategoryLine& a, const CategoryLine& b) {
    return a.at_peak > b.at_peak;
  });
  const double scale = static_cast<double>(std::max(e.device.point, e.usable_bytes));
  constexpr int kWidth = 40;
  TextTable table({Align::left, Align::right, Align::left, Align::left});
  for (const CategoryLine& line : lines)
    table.add({words(line.category), format_bytes(line.at_peak), std::string(name_of(line.source)),
               bar(static_cast<double>(line.at_peak) / scale, kWidth)});
  table.add({"in all", format_bytes(e.device.point), "",
             bar(static_cast<double>(e.device.point) / scale, kWidth)});
  table.add({"usable", format_bytes(e.usable_bytes), "",
             bar(static_cast<double>(e.usable_bytes) / scale, kWidth)});
  return table.text();
}

std::string largest_consumer(const Estimate& e, const Plan& plan) {
  const auto largest = std::max_element(
      e.breakdown.begin(), e.breakdown.end(),
      [](const CategoryLine& a, const CategoryLine& b) { return a.at_peak < b.at_peak; });
  return fmt::format("The largest part is {} ({}): {}.", words(largest->category),
                     format_bytes(largest->at_peak), explain(largest->category, e, plan));
}

std::string phase_table(const Estimate& e) {
  TextTable table({Align::left, Align::right, Align::right});
  table.add({"allocated by PyTorch", "peak", "at its end"});
  table.add({"model built", "", format_bytes(e.model_bytes)});
  constexpr std::array kNames{"forward pass", "backward pass", "clipping and optimizer step"};
  for (std::size_t p = 0; p < e.phases.size(); ++p)
    table.add({kNames[p], format_bytes(e.phases[p].peak), format_bytes(e.phases[p].end)});
  return table.text();
}

std::string traffic_table(const Estimate& e) {
  if (e.traffic.empty()) return "  none\n";
  TextTable table({Align::left, Align::left, Align::right, Align::right});
  table.add({"each GPU, each optimizer step", "link", "sent", "calls"});
  for (const TrafficLine& line : e.traffic)
    table.add({std::string(line.what), std::string(name_of(line.link)),
               format_bytes(line.bytes_per_step), format_count(line.count)});
  return table.text();
}

std::string time_lines(const Estimate& e) {
  const TimeEstimate& t = e.time;
  if (t.step_seconds <= 0) return "  not estimated: the GPU's rates are not known\n";
  std::string text = fmt::format(
      "  about {} a step, {} tokens/s in all, {:.0f} % of the GPUs' dense peak (assumed "
      "efficiencies)\n  {} computing",
      format_seconds(t.step_seconds), format_count(static_cast<std::int64_t>(t.tokens_per_second)),
      100 * t.mfu, format_seconds(t.compute_seconds));
  if (t.exposed_communication_seconds > 0)
    text += fmt::format(", {} waiting for the network",
                        format_seconds(t.exposed_communication_seconds));
  if (t.copy_seconds > 0) text += fmt::format(", {} copying", format_seconds(t.copy_seconds));
  if (t.cpu_optimizer_seconds > 0)
    text += fmt::format(", {} in the host's optimizer", format_seconds(t.cpu_optimizer_seconds));
  return text + "\n";
}

std::string foundation(const Estimate& e, const Job& job, const Calibration& calibration) {
  std::string text;
  for (const Diagnostic& d : job.diagnostics)
    text +=
        fmt::format("  {}: {}\n", d.severity == Severity::note ? "note" : "warning", to_string(d));
  for (const std::string& a : job.assumed) text += fmt::format("  assumed: {}\n", a);
  if (job.plan.cluster.gpu.usable_source == Source::assumed)
    text += fmt::format("  assumed: {} of {} can be allocated (no verified figure)\n",
                        format_bytes(e.usable_bytes), format_bytes(e.capacity_bytes));
  const bool fitted = job.plan.cluster.gpu.arch == calibration.arch;
  text += fmt::format("  {}: CUDA context and NCCL from {}{}\n", fitted ? "calibrated" : "assumed",
                      calibration.name, fitted ? "" : ", measured on another kind of GPU");
  text +=
      "  exact: parameters, gradients and optimizer states are counted tensor by tensor\n"
      "  modelled: activations and buffers follow what PyTorch and the framework allocate\n";
  if (e.ranks_differ) text += fmt::format("  shown: rank {}, the fullest\n", e.rank);
  return text;
}

std::string estimate_text(const Estimate& e, const Job& job, const Calibration& calibration) {
  const Model& m = job.model;
  std::string plan = describe_plan(job);
  plan.insert(plan.find('\n') + 1, "  ");
  const Fit fit = e.verdict.fits                   ? Fit::fits
                  : e.verdict.limited_by == "host" ? e.verdict.host.fit
                  : e.verdict.limited_by == "nvme" ? e.verdict.nvme.fit
                                                   : e.verdict.gpu.fit;
  std::string text =
      fmt::format("{}: {} ({} parameters) on {}\n  {}\n\n", verdict_word(fit),
                  m.facts.name.empty() ? m.facts.model_type : m.facts.name,
                  format_parameters(e.parameters), describe_cluster(job.plan.cluster), plan);
  text += resource_lines(e);
  text += fmt::format("\nWhat fills the GPU at the peak, in the {} {}\n", name_of(e.peak_phase),
                      e.peak_phase == Phase::step ? "of the optimizer" : "pass");
  text += breakdown_bars(e);
  text += "\nPhases\n" + phase_table(e);
  text += "\nTraffic\n" + traffic_table(e);
  text += "\nTime\n" + time_lines(e);
  text += "\nWhat this rests on\n" + foundation(e, job, calibration);
  return text;
}

}  // namespace shardplan
