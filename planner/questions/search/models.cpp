#include "questions/search/models.h"

#include <algorithm>

namespace shardplan {
namespace {

/// What plans of one space can have different.
bool same(const BuildOptions& a, const BuildOptions& b) {
  return a.attention == b.attention && a.loss == b.loss && a.kernels == b.kernels &&
         a.requested == b.requested && a.widens_outputs == b.widens_outputs;
}

/// Calls visit(plan) for every combination of the axes that build_options looks at.
template <typename Visit>
void for_each_build(const SearchSpace& space, Visit&& visit) {
  std::vector<Plan> plans{space.base};
  for (const Axis& axis : space.axes) {
    if (axis.name != "strategy" && axis.name != "checkpointing") continue;
    std::vector<Plan> more;
    for (const Plan& plan : plans)
      for (std::size_t v = 0; v < axis.values.size(); ++v) {
        more.push_back(plan);
        axis.apply(more.back(), v);
      }
    plans = std::move(more);
  }
  for (const Plan& plan : plans) visit(plan);
}

}  // namespace

ModelVariants::ModelVariants(const Model& model, const Plan& plan, const SearchSpace& space,
                             const std::function<Model(const BuildOptions&)>& build)
    : own_(&model) {
  const BuildOptions own = build_options(plan);
  for_each_build(space, [&](const Plan& p) {
    const BuildOptions options = build_options(p);
    const bool known = same(options, own) ||
                       std::any_of(others_.begin(), others_.end(),
                                   [&](const Variant& v) { return same(v.options, options); });
    if (!known) others_.push_back({options, build(options)});
  });
}

const Model& ModelVariants::of(const Plan& plan) const {
  if (others_.empty()) return *own_;
  const BuildOptions options = build_options(plan);
  for (const Variant& v : others_)
    if (same(v.options, options)) return v.model;
  return *own_;
}

}  // namespace shardplan
