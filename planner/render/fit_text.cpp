#include "render/fit_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/foundation.h"

namespace shardplan {
namespace {

/// What a change costs in time for each token, or "" when that is not known.
std::string price(const Fix& fix) {
  if (fix.slowdown <= 0) return "";
  if (fix.slowdown > 0.95 && fix.slowdown < 1.05) return ", about as fast";
  return fmt::format(", {:.2g}× the time for each token", fix.slowdown);
}

std::string outcome(const Estimate& e) {
  std::string text = fmt::format("{}, needs {} of each GPU", verdict_word(overall(e.verdict)),
                                 format_bytes(e.device.point));
  if (e.host_per_node.total() > 0)
    text += fmt::format(" and {} of each host", format_bytes(e.host_per_node.total()));
  return text;
}

std::string fix_lines(const std::vector<Fix>& fixes) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(fixes.size(), kShown); ++i) {
    const Fix& fix = fixes[i];
    std::vector<std::string> what;
    for (const Change& c : fix.changes) what.push_back(c.what);
    text += fmt::format("  {}. {}\n", i + 1, fmt::join(what, " + "));
    text += fmt::format("     {}: saves {}{}\n", outcome(fix.after), format_bytes(fix.gpu_saved),
                        price(fix));
    for (const Change& c : fix.changes) text += fmt::format("     {}\n", c.how);
  }
  return text;
}

std::string advice(const Estimate& e, const std::vector<Fix>& fixes) {
  if (!fixes.empty())
    return (e.verdict.fits ? "\nTo make more room\n" : "\nWhat would change the verdict\n") +
           fix_lines(fixes);
  if (e.verdict.fits) return "";
  return "\nNothing in this plan can be made lighter: it takes more GPUs or a smaller model\n";
}

}  // namespace

std::string fit_text(const Estimate& e, const Job& job, const std::vector<Fix>& fixes,
                     const Calibration& calibration) {
  std::string text = headline(e, job) + "\n" + resource_lines(e);
  text +=
      fmt::format("\nWhat fills the fullest GPU at its peak, in {}\n", phase_words(e.peak_phase));
  text += breakdown_bars(e) + largest_consumer(e, job.plan);
  text += advice(e, fixes);
  text += "\nTime\n" + time_lines(e);
  text += "\nWhat this rests on\n" + foundation(e, job, calibration);
  return text;
}

}  // namespace shardplan
