#include "render/describe.h"

#include <fmt/format.h>

#include "base/format.h"
#include "frameworks/registry.h"
#include "optimizers/description.h"
#include "parallel/support.h"
#include "program/tape.h"
#include "render/english.h"
#include "render/table.h"
#include "report/plan_words.h"
#include "report/words.h"

namespace shardplan {
namespace {

std::string model_words(const Model& model) {
  const ModelFacts& facts = model.facts;
  return fmt::format("{} ({} parameters)", facts.name.empty() ? facts.model_type : facts.name,
                     format_parameters(model.parameter_count()));
}

}  // namespace

std::string verdict_word(Fit fit) {
  return english(report::words_of(fit));
}

Fit overall(const Verdict& v) {
  if (v.fits) return Fit::fits;
  return v.limited_by == "host" ? v.host.fit : v.limited_by == "nvme" ? v.nvme.fit : v.gpu.fit;
}

std::string verdict_words(const Verdict& v) {
  const bool open = v.host.fit == Fit::unknown || v.nvme.fit == Fit::unknown;
  const std::string word = verdict_word(overall(v));
  return v.fits && open ? word + " (GPU)" : word;
}

std::string phase_words(Phase phase) {
  return english(report::words_of(phase));
}

std::string category_words(Category category, const GpuAbilities& gpu) {
  return english(report::words_of(category, gpu));
}

std::string describe_cluster(const Cluster& c) {
  return english(report::cluster_words(c));
}

std::string subject(const Job& job) {
  std::string lines;
  for (const report::Cell& line : report::plan_words(job))
    lines += wrapped(english(line), "  ", "    ");
  return fmt::format("{} on {}\n{}", model_words(job.model), describe_cluster(job.plan.cluster),
                     lines);
}

std::string headline(const Estimate& e, const Job& job) {
  return fmt::format("{}: {}", verdict_words(e.verdict), subject(job));
}

}  // namespace shardplan
