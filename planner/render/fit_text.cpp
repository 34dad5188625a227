#include "render/fit_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "render/estimate_text.h"
#include "render/table.h"
#include "save/estimate.h"

namespace shardplan {
namespace {

std::string price(const Fix& fix) {
  if (fix.slowdown <= 0) return "";
  if (fix.slowdown > 1.02) return fmt::format("about {:.2g}× the time", fix.slowdown);
  if (fix.slowdown < 0.98) return fmt::format("about {:.2g}× the time", fix.slowdown);
  return "no slower";
}

std::string outcome(const Fix& fix) {
  const Estimate& e = fix.after;
  std::string text = verdict_word(e.verdict.fits                   ? Fit::fits
                                  : e.verdict.limited_by == "host" ? e.verdict.host.fit
                                                                   : e.verdict.gpu.fit);
  text += fmt::format(", {} of the GPU", format_bytes(e.device.point));
  if (e.host_per_node.total() > 0)
    text += fmt::format(" and {} of the host", format_bytes(e.host_per_node.total()));
  return text;
}

std::string fix_lines(const std::vector<Fix>& fixes) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(fixes.size(), kShown); ++i) {
    const Fix& fix = fixes[i];
    std::vector<std::string> what, how;
    for (const Change& c : fix.changes) {
      what.push_back(c.what);
      how.push_back(c.how);
    }
    text += fmt::format("  {}. {}\n", i + 1, fmt::join(what, " + "));
    text += fmt::format("     saves {}{}{}: {}\n", format_bytes(fix.gpu_saved),
                        price(fix).empty() ? "" : ", ", price(fix), outcome(fix));
    for (const std::string& h : how) text += fmt::format("     {}\n", h);
  }
  return text;
}

}  // namespace

std::string fit_text(const Estimate& e, const Job& job, const std::vector<Fix>& fixes,
                     const Calibration& calibration) {
  const Verdict& v = e.verdict;
  const Fit fit = v.fits                   ? Fit::fits
                  : v.limited_by == "host" ? v.host.fit
                  : v.limited_by == "nvme" ? v.nvme.fit
                                           : v.gpu.fit;
  std::string plan = describe_plan(job);
  plan.insert(plan.find('\n') + 1, "  ");
  const ModelFacts& facts = job.model.facts;
  std::string text =
      fmt::format("{}: {} ({} parameters) on {}\n  {}\n\n", verdict_word(fit),
                  facts.name.empty() ? facts.model_type : facts.name,
                  format_parameters(e.parameters), describe_cluster(job.plan.cluster), plan);
  text += resource_lines(e);
  text += fmt::format("\nWhat fills a GPU at its peak, in the {}\n",
                      e.peak_phase == Phase::step ? "optimizer step"
                                                  : fmt::format("{} pass", name_of(e.peak_phase)));
  text += breakdown_bars(e);
  text += "  " + largest_consumer(e, job.plan) + "\n";
  if (!fixes.empty()) {
    text += v.fits ? "\nTo make more room\n" : "\nWhat would change the verdict\n";
    text += fix_lines(fixes);
  } else if (!v.fits) {
    text += "\nNothing in this plan can be made lighter: it takes more GPUs or a smaller model\n";
  }
  text += "\nTime\n" + time_lines(e);
  text += "\nWhat this rests on\n" + foundation(e, job, calibration);
  return text;
}

}  // namespace shardplan
