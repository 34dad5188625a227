#include "render/foundation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/format.h"
#include "base/units.h"
#include "estimate/confirmed.h"
#include "frameworks/registry.h"
#include "render/table.h"

namespace shardplan {
namespace {

constexpr std::string_view kFromModel = "model: ", kFromCluster = "cluster: ";

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// What the job left open is one statement; what the model and the cluster left open, one each.
void add_assumptions(std::vector<Statement>& out, const Job& job) {
  std::string open;
  std::vector<Statement> rest;
  for (const std::string& a : job.assumed) {
    if (begins_with(a, kFromCluster)) {
      rest.push_back({"assumed", a.substr(kFromCluster.size())});
    } else if (begins_with(a, kFromModel)) {
      rest.push_back({"assumed", a.substr(kFromModel.size())});
    } else {
      open += (open.empty() ? "" : "; ") + a;
    }
  }
  if (!open.empty()) out.push_back({"assumed", "because nothing else was said: " + open});
  out.insert(out.end(), rest.begin(), rest.end());
}

void add_tensors(std::vector<Statement>& out, const Estimate& e, const Plan& plan,
                 const Calibration& calibration) {
  const auto states = std::find_if(
      e.breakdown.begin(), e.breakdown.end(),
      [](const CategoryLine& line) { return line.category == Category::optimizer_states; });
  if (e.most_over > 1)
    return out.push_back(
        {"modelled",
         fmt::format("parameters, gradients and optimizer states: from the framework's source; "
                     "published runs took up to {:.0f} % more, which the upper bound includes",
                     100 * (e.most_over - 1))});
  if (e.serving)
    return out.push_back({"modelled",
                          "weights and cache: counted as the engine loads them; what measured "
                          "engines took: docs/evidence/measurements.md"});
  if (const std::vector<std::string> open = unconfirmed(plan, e.host_per_node, calibration);
      !open.empty())
    return out.push_back(
        {"modelled",
         fmt::format("parameters, gradients and optimizer states: counted tensor by tensor; no "
                     "measured run of {} confirms them with {}",
                     std::string_view(traits_of(plan).label), fmt::join(open, ", "))});
  const bool confirmed =
      states == e.breakdown.end() || states->resident == 0 || states->source == Source::exact;
  if (confirmed) {
    out.push_back(
        {"exact", "parameters, gradients and optimizer states: counted tensor by tensor"});
  } else {
    out.push_back({"exact", "parameters and gradients: counted tensor by tensor"});
    out.push_back(
        {"modelled", "optimizer states: from the optimizer's source; no run has confirmed them"});
  }
}

bool divides_experts(const Plan& plan) {
  return plan.workload.kind == WorkKind::train && plan.parallel.expert > 1;
}

/// A price is of a machine with a network of its own, which its time depends on.
void add_price(std::vector<Statement>& out, const Cluster& cluster) {
  constexpr double kSameBandwidth = 0.99;
  const std::optional<ListPrice>& price = cluster.list_price;
  if (cluster.nodes <= 1 || !price || price->same_machine || price->network <= 0 ||
      price->network >= kSameBandwidth * cluster.inter_node_bandwidth)
    return;
  out.push_back(
      {"assumed",
       fmt::format("the price is that of {}, whose network has {:.4g} GB/s per GPU and not {:.4g}: "
                   "as the cluster it takes longer",
                   price->machine, price->network / kGiga, cluster.inter_node_bandwidth / kGiga)});
}

/// Layouts, optimizers, NVMe and networks that no run has confirmed are called what they are.
void add_states(std::vector<Statement>& out, const Estimate& e, const Plan& plan,
                const Calibration& calibration) {
  add_tensors(out, e, plan, calibration);
  const std::vector<std::string> open = unconfirmed(plan, e.host_per_node, calibration);
  if (std::find(open.begin(), open.end(), "NVMe") != open.end())
    out.push_back({"modelled", "NVMe: from the framework's source; no run with NVMe was measured"});
  if (divides_experts(plan) && plan.parallel.expert_imbalance == 1)
    out.push_back({"assumed",
                   "experts: each GPU's get the mean of the tokens; an untrained router may send "
                   "one several times as many, with its memory and time (expert_imbalance)"});
  add_price(out, plan.cluster);
  if (plan.cluster.nodes > 1 && e.time.step_seconds > 0)
    out.push_back(
        {"assumed",
         "time between nodes: from NCCL's rules and the links' rates; no machine of several "
         "nodes was measured"});
}

void add_anchor(std::vector<Statement>& out, const Anchor& anchor) {
  std::string words =
      fmt::format("a step in {} took {} where {} were predicted; the machine takes {}", anchor.run,
                  format_seconds(anchor.measured_seconds), format_seconds(anchor.predicted_seconds),
                  describe(anchor.factors));
  if (anchor.memory_over > 1)
    words += fmt::format("; it had {:.1f} % more memory than estimated, which upper bounds include",
                         100 * (anchor.memory_over - 1));
  out.push_back({"anchored", words});
}

/// Several models in turn are an iteration, whatever the plan of the one that trains.
Plan plan_of(const Job& job) {
  Plan plan = job.plan;
  if (job.rlhf) plan.workload.kind = WorkKind::rlhf;
  return plan;
}

}  // namespace

std::vector<Statement> statements(const Estimate& e, const Job& job,
                                  const Calibration& calibration) {
  std::vector<Statement> out;
  for (const Diagnostic& d : job.diagnostics)
    out.push_back({d.severity == Severity::note ? "note" : "warning", to_string(d)});
  add_assumptions(out, job);
  const Gpu& gpu = job.plan.cluster.gpu;
  const bool fitted = gpu.arch == calibration.arch;
  const GpuAbilities& on = gpu.abilities;
  const bool other_runtime =
      on.runtime != calibration.runtime || on.collectives != calibration.collectives;
  const char* standing = fitted ? "calibrated" : "assumed";
  out.push_back(
      {standing,
       other_runtime
           ? fmt::format(
                 "{} context, {} and fragmentation: taken from {} and {}, which were fitted to "
                 "measurements ({}) on another kind of GPU",
                 on.runtime, on.collectives, calibration.runtime, calibration.collectives,
                 calibration.name)
           : fmt::format("{} context, {} and fragmentation: fitted to measurements ({}){}",
                         on.runtime, on.collectives, calibration.name,
                         fitted ? "" : ", but on another kind of GPU than this")});
  if (e.time.step_seconds > 0)
    out.push_back(
        {standing,
         fmt::format("time: shares of the datasheet's rates, fitted to measurements ({}){}; "
                     "docs/explanation/time.md",
                     calibration.name, fitted ? "" : " on another kind of GPU")});
  if (e.serving && e.time.step_seconds > 0)
    out.push_back({"modelled",
                   "tokens per second of an engine: 475 published runs, predicted before they were "
                   "compared, are 24 % off in the mean, most of them too fast; "
                   "docs/evidence/measurements.md"});
  if (calibration.anchor) add_anchor(out, *calibration.anchor);
  add_states(out, e, plan_of(job), calibration);
  out.push_back({"modelled",
                 "activations and buffers: what PyTorch and the framework allocate "
                 "(docs/explanation/memory.md)"});
  if (e.ranks_differ)
    out.push_back(
        {"shown", fmt::format("rank {}: GPUs hold different parts, and it needs most", e.rank)});
  return out;
}

std::string foundation(const Estimate& e, const Job& job, const Calibration& calibration) {
  constexpr std::size_t kColumn = 14;
  std::string text;
  for (const Statement& s : statements(e, job, calibration))
    text += wrapped(s.words, fmt::format("  {:<12}", s.standing), std::string(kColumn, ' '));
  return text;
}

}  // namespace shardplan
