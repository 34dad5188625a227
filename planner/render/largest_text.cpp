#include "render/largest_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "render/describe.h"
#include "render/estimate_text.h"

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

/// What fits by the estimate, where that is more than what surely does.
std::string probably_text(std::string_view of, const LargestResult& r) {
  if (!r.probably || r.probably == r.value) return "";
  std::string value = format_count(*r.probably);
  if (of == "parameters") value += fmt::format(" ({})", format_parameters(*r.probably));
  return fmt::format("  {} probably fit{}: {}, upper bound {}\n", value,
                     of == "gpus" && *r.probably > 1 ? "" : "s", need(*r.at_probably),
                     format_bytes(r.at_probably->device.upper));
}

std::string none_text(std::string_view of, const LargestResult& r, const std::string& cluster) {
  const bool late = r.beyond && r.beyond->verdict.fits;
  std::string text = of == "gpus" ? fmt::format("No number of these GPUs is {}enough\n",
                                                r.probably ? "surely " : "")
                                  : fmt::format("Not even the smallest {} {}fits on {}{}\n",
                                                quantity(of), r.probably ? "surely " : "", cluster,
                                                late ? " in the time that was asked" : "");
  if (late)
    text += "  it takes " + format_seconds(r.beyond->time.step_seconds) + "\n" +
            error_line(r.beyond->time);
  else if (r.beyond)
    text += fmt::format("  it needs {}\n", need(*r.beyond));
  return text + probably_text(of, r);
}

std::string beyond_text(std::string_view of, const Estimate& e) {
  if (e.verdict.fits)
    return fmt::format("  one step further takes {}: longer than was asked\n",
                       format_seconds(e.time.step_seconds)) +
           error_line(e.time);
  const std::string_view by = e.verdict.limited_by == "gpu" ? "GPU" : e.verdict.limited_by;
  return fmt::format("  one step {} needs {}, upper bound {}: {} for the {}\n",
                     of == "gpus" ? "fewer" : "further", need(e), format_bytes(e.device.upper),
                     probably_fits(e.verdict) ? "perhaps too much" : "too much", by);
}

}  // namespace

std::string largest_text(std::string_view of, const LargestResult& r, const Job& job) {
  const std::string cluster = describe_cluster(job.plan.cluster);
  if (!r.value) return none_text(of, r, cluster);
  std::string text = of == "gpus"
                         ? "Smallest number of GPUs that surely fits"
                         : fmt::format("Largest {} that surely fits on {}", quantity(of), cluster);
  text += ": " + format_count(*r.value);
  if (of == "parameters") text += fmt::format(" ({})", format_parameters(*r.value));
  text += "\n";
  if (r.at)
    text +=
        fmt::format("  it needs {}; {} to spare, upper bound {}\n", need(*r.at),
                    format_bytes(r.at->verdict.headroom_bytes), format_bytes(r.at->device.upper));
  text += probably_text(of, r);
  const bool said = r.at_probably && r.beyond &&
                    r.beyond->verdict.headroom_bytes == r.at_probably->verdict.headroom_bytes &&
                    r.beyond->device.upper == r.at_probably->device.upper;
  if (r.beyond && !said) text += beyond_text(of, *r.beyond);
  if (r.at_limit) text += "  the search stopped there; nothing ran out\n";
  return text;
}

}  // namespace shardplan
