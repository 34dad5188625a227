#include "estimate/confirmed.h"

#include <algorithm>
#include <array>

#include "formats/product_recipe.h"
#include "frameworks/registry.h"
#include "parallel/support.h"
#include "plan/precision_presets.h"

namespace shardplan {
namespace {

/// The preset with the same types; recipes of linears are features of their own.
std::string preset_of(const Precision& precision) {
  for (const PrecisionPreset& preset : kPrecisionPresets) {
    const Precision p = preset.precision();
    if (p.params == precision.params && p.compute == precision.compute &&
        p.gradients == precision.gradients && p.optimizer_states == precision.optimizer_states &&
        p.master == precision.master)
      return p.name;
  }
  return "custom precision";
}

/// Beside the plan's own types.
void add_formats(std::vector<std::string>& features, const Plan& plan) {
  if (plan.precision.linear != LinearRecipe::computed)
    features.emplace_back(name_of(plan.precision.linear));
  if (const Quantization stored = quantization_of(plan.workload); stored != Quantization::none)
    features.emplace_back(name_of(stored));
  if (plan.workload.generation.fp8_cache) features.emplace_back("fp8 cache");
}

void add_adapters(std::vector<std::string>& features, const Workload& w) {
  if (!w.lora) return;
  features.emplace_back(w.lora->rotation_block > 0 ? "OFT" : "LoRA");
  if (w.lora->magnitudes) features.emplace_back("DoRA");
}

void add_degrees(std::vector<std::string>& features, const Parallel& parallel) {
  for (std::size_t d = 0; d < kDegreeNames.size(); ++d)
    if (parallel.*member_of(static_cast<Degree>(d)) > 1) features.emplace_back(kDegreeNames[d]);
}

}  // namespace

std::vector<std::string> features_of(const Plan& plan, const HostMemory& host) {
  std::vector<std::string> features{preset_of(plan.precision)};
  constexpr std::array<std::string_view, 3> kWork{"training", "generation", "iterations"};
  features.emplace_back(kWork[static_cast<std::size_t>(plan.workload.kind)]);
  if (plan.workload.generation.engine) features.emplace_back("engine");
  add_formats(features, plan);
  add_adapters(features, plan.workload);
  add_degrees(features, plan.parallel);
  if (host.pinned + host.pageable > 0) features.emplace_back("host");
  if (host.nvme > 0) features.emplace_back("NVMe");
  return features;
}

std::vector<std::string> unconfirmed(const Plan& plan, const HostMemory& host,
                                     const Calibration& calibration) {
  std::vector<std::string> features = features_of(plan, host);
  const std::string_view framework = traits_of(plan).name;
  const auto known = std::find_if(calibration.confirmed.begin(), calibration.confirmed.end(),
                                  [&](const Confirmed& c) { return c.framework == framework; });
  if (known != calibration.confirmed.end())
    std::erase_if(features, [&](const std::string& feature) {
      return std::find(known->features.begin(), known->features.end(), feature) !=
             known->features.end();
    });
  const std::string& runtime = plan.cluster.gpu.abilities.runtime;
  if (runtime != calibration.runtime) features.push_back(runtime);
  return features;
}

Source tensors_source(const Plan& plan, const HostMemory& host, const Calibration& calibration) {
  return unconfirmed(plan, host, calibration).empty() ? Source::exact : Source::modelled;
}

}  // namespace shardplan
