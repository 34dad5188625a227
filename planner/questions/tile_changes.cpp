#include "questions/tile_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// What is alive of a feed-forward in 24 parts is less than what its block keeps of its input; more
/// parts save nothing that decides, and each is launched and laid out by itself.
constexpr std::int64_t kMostTiles = 24;

}  // namespace

std::int64_t usual_tiles(const Model& model, const Plan& plan) {
  const std::int64_t width = model.facts.hidden;
  if (!plan.trainer->tiles_mlps || width <= 0 || plan.workload.kind != WorkKind::train) return 0;
  const std::int64_t ranks = plan.parallel.sequence * plan.parallel.context;
  const std::int64_t tokens = plan.workload.sequence_length / ranks;
  return tokens > width ? std::min(ceil_div(tokens, width), kMostTiles) : 0;
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
