#include "render/foundation.h"

#include <fmt/format.h>

#include "render/table.h"

namespace shardplan {
namespace {

constexpr std::string_view kFromModel = "model: ", kFromCluster = "cluster: ";

/// One statement: its standing, then the words, which may take several lines.
std::string statement(std::string_view standing, std::string_view words) {
  constexpr std::size_t kColumn = 14;
  return wrapped(words, fmt::format("  {:<12}", standing), std::string(kColumn, ' '));
}

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// What the job left open is one statement; what the model and the cluster left open, one each.
std::string assumptions(const Job& job) {
  std::string open, rest;
  for (const std::string& a : job.assumed) {
    if (begins_with(a, kFromCluster)) {
      rest += statement("assumed", a.substr(kFromCluster.size()));
    } else if (begins_with(a, kFromModel)) {
      rest += statement("assumed", a.substr(kFromModel.size()));
    } else {
      open += (open.empty() ? "" : "; ") + a;
    }
  }
  return (open.empty() ? "" : statement("assumed", "because nothing else was said: " + open)) +
         rest;
}

}  // namespace

std::string foundation(const Estimate& e, const Job& job, const Calibration& calibration) {
  std::string text;
  for (const Diagnostic& d : job.diagnostics)
    text += statement(d.severity == Severity::note ? "note" : "warning", to_string(d));
  text += assumptions(job);
  const bool fitted = job.plan.cluster.gpu.arch == calibration.arch;
  text += statement(
      fitted ? "calibrated" : "assumed",
      fmt::format("CUDA context, NCCL and fragmentation: fitted to measurements ({}){}",
                  calibration.name, fitted ? "" : ", but on another kind of GPU than this"));
  if (e.time.step_seconds > 0)
    text += statement(
        fitted ? "calibrated" : "assumed",
        fmt::format("time: shares of the datasheet's rates, fitted to measurements ({}){}; "
                    "docs/time.md",
                    calibration.name, fitted ? "" : " on another kind of GPU"));
  text +=
      statement("exact", "parameters, gradients and optimizer states: counted tensor by tensor");
  text += statement("modelled",
                    "activations and buffers: what PyTorch and the framework allocate "
                    "(docs/memory.md)");
  if (e.ranks_differ)
    text += statement("shown",
                      fmt::format("rank {}: GPUs hold different parts, and it needs most", e.rank));
  return text;
}

}  // namespace shardplan
