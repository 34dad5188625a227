#include "render/largest_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "render/describe.h"

namespace shardplan {
namespace {

std::string quantity(std::string_view of) {
  if (of == "gpus") return "number of GPUs";
  if (of == "parameters") return "number of parameters";
  std::string text(of);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text == "micro batch" ? "micro-batch" : text;
}

std::string need(const Estimate& e) {
  std::string text = fmt::format("{} of {} on each GPU", format_bytes(e.device.point),
                                 format_bytes(e.usable_bytes));
  if (e.host_per_node.total() > 0)
    text += fmt::format(", {} of each host", format_bytes(e.host_per_node.total()));
  return text;
}

}  // namespace

std::string largest_text(std::string_view of, const LargestResult& r, const Job& job) {
  const bool gpus = of == "gpus";
  const std::string cluster = describe_cluster(job.plan.cluster);
  if (!r.value) {
    std::string text =
        gpus ? "No number of these GPUs is enough\n"
             : fmt::format("Not even the smallest {} fits on {}{}\n", quantity(of), cluster,
                           r.beyond && r.beyond->verdict.fits ? " in the time that was asked" : "");
    if (r.beyond && r.beyond->verdict.fits)
      text += fmt::format("  it takes {}\n", format_seconds(r.beyond->time.step_seconds));
    else if (r.beyond)
      text += fmt::format("  it needs {}\n", need(*r.beyond));
    return text;
  }
  std::string text =
      fmt::format("{} {} that fits{}: {}", gpus ? "Smallest" : "Largest", quantity(of),
                  gpus ? "" : " on " + cluster, format_count(*r.value));
  if (of == "parameters") text += fmt::format(" ({})", format_parameters(*r.value));
  text += "\n";
  if (r.at)
    text +=
        fmt::format("  it needs {}; {} to spare, upper bound {}\n", need(*r.at),
                    format_bytes(r.at->verdict.headroom_bytes), format_bytes(r.at->device.upper));
  if (r.beyond && r.beyond->verdict.fits)
    text += fmt::format("  one step further takes {}: longer than was asked\n",
                        format_seconds(r.beyond->time.step_seconds));
  if (r.beyond && !r.beyond->verdict.fits)
    text += fmt::format(
        "  one step {} needs {}, upper bound {}: too much for the {}\n", gpus ? "fewer" : "further",
        need(*r.beyond), format_bytes(r.beyond->device.upper),
        r.beyond->verdict.limited_by == "gpu" ? "GPU" : r.beyond->verdict.limited_by);
  if (r.at_limit) text += "  the search stopped there; nothing ran out\n";
  return text;
}

}  // namespace shardplan
