// Whether feed-forwards run over parts of the sequence.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "checkpointing/problems.h"
#include "questions/search/axes.h"
#include "questions/tile_changes.h"

namespace shardplan {

std::vector<Axis> tile_axes(const Model& model, const Plan& base, const AxisValues& values) {
  std::vector<std::int64_t> all = values.mlp_tiles;
  if (all.empty()) {
    all = {0, base.mlp_tiles};
    const bool estimated = searches(base, values, [](const FrameworkTraits& f) {
      return f.tiled_mlps != TiledMlps::unknown && f.tiled_mlps != TiledMlps::stops;
    });
    if (estimated) all.push_back(usual_tiles(model, base));
  }
  all = sorted_values(std::move(all));
  if (all.size() == 1 && all.front() == base.mlp_tiles) return {};
  Axis axis;
  axis.name = "mlp_tiles";
  axis.flag = "--mlp-tile-counts";
  for (const std::int64_t n : all) axis.values.push_back(fmt::format("{}", n));
  axis.apply = [all](Plan& p, std::size_t v) { p.mlp_tiles = all[v]; };
  axis.rules = {{"feed-forwards in parts are not estimated beside what else the plan has",
                 "--checkpointings",
                 [shared = std::make_shared<const Model>(model)](const Plan& p, std::size_t) {
                   const auto problem = checkpointing_problem(*shared, p);
                   return problem && problem->key == "mlp_tiles";
                 }}};
  return {std::move(axis)};
}

}  // namespace shardplan
