#include "questions/tile_changes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "trainers/description.h"

namespace shardplan {

std::int64_t usual_tiles(const Model& model, const Plan& plan) {
  const std::int64_t width = model.facts.hidden;
  if (!plan.trainer->tiles_mlps || width <= 0 || plan.workload.kind != WorkKind::train) return 0;
  const std::int64_t ranks = plan.parallel.sequence * plan.parallel.context;
  const std::int64_t tokens = plan.workload.sequence_length / ranks;
  return tokens > width ? ceil_div(tokens, width) : 0;
}

std::vector<Change> tile_changes(const Model& model, const Plan& plan) {
  const std::int64_t parts = usual_tiles(model, plan);
  if (parts == 0 || plan.mlp_tiles > 0) return {};
  return {{fmt::format("feed-forwards in {} parts of the sequence", parts),
           fmt::format("tiled_mlp_num_shards: {0} in axolotl; model.tiled_mlp.num_shards: {0} in "
                       "verl; DeepSpeed's TiledMLP; --mlp-tiles {0}",
                       parts),
           [parts](Plan& p) { p.mlp_tiles = parts; }, "tiles"}};
}

}  // namespace shardplan
