#include "model/positions.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace shardplan {
namespace {

/// The object that says how rotation is stretched, by its older name or the newer one; "": none.
std::string rotation_of(const ModelConfig& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (config.entries(key) > 0) return std::string(key) + ".";
  return "";
}

}  // namespace

std::int64_t stretched_positions(const ModelConfig& config, std::int64_t positions) {
  const std::string rotation = rotation_of(config);
  if (positions == 0 || rotation.empty()) return positions;
  // Gemma 3's positions are of the stretched rotation.
  if (config.text("model_type", "").starts_with("gemma3")) return positions;
  const std::string kind =
      config.text(rotation + "rope_type", config.text(rotation + "type", "default"));
  constexpr std::array<std::string_view, 4> kStretchedAlready{"default", "su", "longrope",
                                                              "llama3"};
  if (std::ranges::find(kStretchedAlready, kind) != kStretchedAlready.end()) return positions;
  const double factor = config.number(rotation + "factor", 1);
  const std::int64_t first =
      kind == "yarn" ? config.optional_count({rotation + "original_max_position_embeddings"})
                           .value_or(positions)
                     : positions;
  return std::max(positions, static_cast<std::int64_t>(static_cast<double>(first) * factor));
}

}  // namespace shardplan
