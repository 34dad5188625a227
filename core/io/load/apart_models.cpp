#include "load/apart_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "json/reader.h"

namespace shardplan {

const Json* ApartModels::entry_of(RoleKind kind) const {
  const std::string name(name_of(kind));
  return models_ != nullptr && models_->contains(name) ? &models_->at(name) : nullptr;
}

std::optional<RoleKind> ApartModels::beside_of(RoleKind kind) const {
  const Json* own = entry_of(kind);
  if (own == nullptr || !own->is_object() || !own->contains("beside")) return std::nullopt;
  ObjectReader o(*own, file_, fmt::format("workload.models.{}", name_of(kind)));
  const auto name = o.choice("beside", {"critic", "reference", "reward"});
  for (const RoleKind other : {RoleKind::critic, RoleKind::reference, RoleKind::reward}) {
    if (name != name_of(other)) continue;
    const Json* theirs = entry_of(other);
    if (other == kind || theirs == nullptr || !theirs->is_object() || !theirs->contains("gpus"))
      o.fail("beside", fmt::format("{} has no GPUs of its own (models.{}.gpus)", *name, *name),
             "a model that has");
    return other;
  }
  return std::nullopt;
}

bool ApartModels::has(RoleKind kind) const {
  const Json* own = entry_of(kind);
  return own != nullptr && own->is_object() && (own->contains("gpus") || own->contains("beside"));
}

Json ApartModels::cluster_of(RoleKind kind, const Json& whole) const {
  const RoleKind whose = beside_of(kind).value_or(kind);
  ObjectReader o(*entry_of(whose), file_, fmt::format("workload.models.{}", name_of(whose)));
  const std::int64_t gpus = o.integer("gpus", 1, 1 << 20).value_or(1);
  const std::string text = whole.is_string() ? whole.get<std::string>() : std::string();
  std::size_t name = 0;
  std::int64_t of_machine = whole.is_object() ? whole.value("gpus_per_node", std::int64_t{1}) : 1;
  for (std::size_t end = 0; (end = text.find_first_not_of("0123456789", name)) > name &&
                            end != std::string::npos && text[end] == 'x';
       name = end + 1)
    of_machine = std::stoll(text.substr(name, end - name));
  const std::int64_t machines = ceil_div(gpus, of_machine);
  if (machines > 1 && gpus % of_machine != 0)
    o.fail("gpus", fmt::format("{} GPUs are no whole machines of {}", gpus, of_machine),
           fmt::format("a multiple of {}", of_machine));
  if (whole.is_string())
    return fmt::format("{}x{}x{}", machines, gpus / machines, text.substr(name));
  Json own = whole;
  own["nodes"] = machines;
  own["gpus_per_node"] = gpus / machines;
  return own;
}

void ApartModels::add(Rlhf& rlhf, Role role) const {
  const ObjectReader o(*entry_of(role.kind), file_,
                       fmt::format("workload.models.{}", name_of(role.kind)));
  const Plan& actor = rlhf.roles.front().plan;
  const AlgorithmDescription& algorithm = rlhf.description();
  if (!scores_apart(algorithm) || !algorithm.generates)
    o.fail("gpus", fmt::format("{} scores within the step that trains", algorithm.name),
           "no GPUs of its own, or an algorithm that generates");
  if (role.idle != Idle::gpu) o.fail("idle", "nobody else takes room on GPUs of its own", "gpu");
  if (role.plan.parallel.pipeline > 1)
    o.fail("parallel.pipeline", "pipeline stages on GPUs of its own are not modelled", "1");
  Workload& w = role.plan.workload;
  if (role.trains)
    w.gradient_accumulation =
        ceil_div(checked_mul(w.gradient_accumulation, actor.data_ranks()), role.plan.data_ranks());
  const auto shares = [&](const RolesApart& group) {
    const RoleKind first = group.roles.front().kind;
    return beside_of(role.kind) == first || beside_of(first) == role.kind;
  };
  const auto group = std::ranges::find_if(rlhf.apart, shares);
  if (group == rlhf.apart.end())
    rlhf.apart.push_back({{std::move(role)}});
  else
    group->roles.push_back(std::move(role));
}

void add_gpus_of(const Rlhf& rlhf, Plan& plan) {
  for (const RolesApart& group : rlhf.apart) {
    const std::int64_t gpus = group.roles.front().plan.cluster.world();
    plan.engine_gpus = checked_add(plan.engine_gpus, gpus);
    plan.engine_nodes +=
        static_cast<double>(gpus) / static_cast<double>(plan.cluster.gpus_per_node);
  }
}

}  // namespace shardplan
