#include "render/fit_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/foundation.h"
#include "render/table.h"

namespace shardplan {
namespace {

/// What a change costs in time for each token, or "" when that is not known.
std::string price(const Fix& fix) {
  if (fix.slowdown <= 0) return "";
  if (fix.slowdown > 0.95 && fix.slowdown < 1.05) return "; about as fast";
  return fmt::format("; {:.2g}× the time for each token", fix.slowdown);
}

std::string outcome(const Fix& fix) {
  const Estimate& e = fix.after;
  std::string text = fmt::format("{}: {} of each GPU", verdict_word(overall(e.verdict)),
                                 format_bytes(e.device.point));
  if (e.host_per_node.total() > 0)
    text += fmt::format(", {} of each host", format_bytes(e.host_per_node.total()));
  return text + fmt::format("; saves {}", format_bytes(fix.gpu_saved)) + price(fix);
}

std::string fix_lines(const std::vector<Fix>& fixes) {
  constexpr std::size_t kShown = 5;
  constexpr std::string_view kIndent = "     ";
  std::string text;
  for (std::size_t i = 0; i < std::min(fixes.size(), kShown); ++i) {
    std::vector<std::string> what;
    for (const Change& c : fixes[i].changes) what.push_back(c.what);
    text +=
        wrapped(fmt::format("{}", fmt::join(what, " + ")), fmt::format("  {}. ", i + 1), kIndent);
    text += wrapped(outcome(fixes[i]), kIndent, kIndent);
    for (const Change& c : fixes[i].changes) text += wrapped(c.how, kIndent, kIndent);
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
