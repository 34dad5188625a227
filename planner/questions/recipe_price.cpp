#include "questions/recipe_price.h"

#include "base/format.h"
#include "base/said.h"
#include "formats/product_recipe.h"

namespace shardplan {

std::optional<Diagnostic> recipe_that_loses(const Job& job, const Calibration& calibration,
                                            const Estimate& with) {
  const ProductRecipe& recipe = recipe_of(job.plan.precision.linear);
  const bool trains_one = job.plan.workload.kind == WorkKind::train;
  if (recipe.cast == OperandCast::none || !trains_one || with.time.step_seconds <= 0)
    return std::nullopt;
  Plan plain = job.plan;
  plain.precision.linear = LinearRecipe::computed;
  const Estimate without = estimate(job.model, plain, calibration);
  if (without.time.step_seconds <= 0 || with.time.step_seconds <= without.time.step_seconds)
    return std::nullopt;
  return Diagnostic{
      .severity = Severity::warning,
      .key = "precision.linear",
      .message = say("{} loses at this size: a step takes {}, {} without it, and a GPU holds {}, "
                     "{} without it",
                     recipe.name, format_seconds(with.time.step_seconds),
                     format_seconds(without.time.step_seconds), format_bytes(with.device.point),
                     format_bytes(without.device.point))};
}

}  // namespace shardplan
