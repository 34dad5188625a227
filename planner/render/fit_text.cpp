#include "render/fit_text.h"

#include <fmt/format.h>

#include "render/cost_text.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/fixes_text.h"
#include "render/foundation.h"
#include "render/tight_text.h"

namespace shardplan {
namespace {

std::string advice(const Estimate& e, const std::vector<Fix>& fixes) {
  if (!fixes.empty())
    return (e.verdict.fits ? "\nTo make more room\n" : "\nWhat would change the verdict\n") +
           fix_lines(fixes);
  if (e.verdict.fits) return "";
  return "\nNothing in this plan can be made lighter: it takes more GPUs or a smaller model\n";
}

}  // namespace

std::string fit_text(const Estimate& e, const Job& job, const std::vector<Fix>& fixes,
                     const Calibration& calibration, const Cost& cost) {
  std::string text = headline(e, job) + "\n" + resource_lines(e) + tight_text(e);
  text +=
      fmt::format("\nWhat fills the fullest GPU at its peak, in {}\n", phase_words(e.peak_phase));
  text += breakdown_bars(e, job.plan.cluster.gpu.abilities) + largest_consumer(e, job.plan);
  text += advice(e, fixes);
  text += "\nTime\n" + time_lines(e, job.plan.cluster.world()) + cost_lines(cost, job.plan.cluster);
  text += "\nWhat this rests on\n" + foundation(e, job, calibration);
  return text;
}

}  // namespace shardplan
