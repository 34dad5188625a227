#include "render/compare_text.h"

#include <fmt/format.h>

#include "base/format.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/table.h"

namespace shardplan {
namespace {

constexpr std::string_view kLegend =
    "\n"
    "  > is the job as it was asked\n"
    "  GPU       what the fullest GPU needs, as nvidia-smi shows it; bound: its upper bound\n"
    "  states    parameters, gradients, master copies and optimizer states on it\n"
    "  host      memory of each node, and NVMe likewise\n"
    "  sent      by each GPU to other GPUs in an optimizer step\n"
    "  step      seconds at datasheet rates and assumed efficiencies (docs/time.md)\n";

std::int64_t sent(const Estimate& e, LinkKind link) {
  std::int64_t sum = 0;
  for (const TrafficLine& line : e.traffic)
    if (line.link == link) sum += line.bytes_per_step;
  return sum;
}

/// Short, since the table is wide: "FITS", "TIGHT (GPU)", "NO (host)".
std::string verdict(const Verdict& v) {
  const Fit fit = overall(v);
  if (fit == Fit::fits) return verdict_word(fit);
  const std::string_view what = v.limited_by == "gpu"    ? "GPU"
                                : v.limited_by == "nvme" ? "NVMe"
                                                         : v.limited_by;
  return fmt::format("{} ({})", fit == Fit::tight ? "TIGHT" : "NO", what);
}

std::string bytes_or_dash(std::int64_t bytes) {
  return bytes == 0 ? "-" : format_bytes(bytes);
}

}  // namespace

std::string compare_text(const Job& job, const std::vector<Alternative>& alternatives) {
  using Align = TextTable::Align;
  TextTable table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::right, Align::right});
  table.add({"", "", "GPU", "bound", "states", "host", "NVMe", "sent", "step"});
  for (const Alternative& a : alternatives) {
    const Estimate& e = a.estimate;
    table.add({(a.is_current ? "> " : "  ") + a.name, verdict(e.verdict),
               format_bytes(e.device.point), format_bytes(e.device.upper),
               format_bytes(model_states(e)), bytes_or_dash(e.host_per_node.total()),
               bytes_or_dash(e.host_per_node.nvme), bytes_or_dash(sent(e, LinkKind::gpu)),
               e.time.step_seconds > 0 ? format_seconds(e.time.step_seconds) : "-"});
  }
  return subject(job) + "\n" + table.text("") + std::string(kLegend);
}

}  // namespace shardplan
