// Pixtral's vision tower (models/pixtral), inside Mistral 3 and LLaVA: images of any size, whose
// patches are one sequence for the whole batch.
#pragma once

#include <string>

#include "model/architectures/towers.h"

namespace shardplan {

struct PixtralTower {
  ParameterId kernel = kNone;
  NormModule first;  ///< of the patches
  NormModule before, after;
  LinearModule q, k, v, out;
  GatedMlp mlp;
  Activation activation = Activation::gelu;
  std::int64_t hidden = 0, heads = 0, layers = 0;  ///< layers: those that are read
  std::int64_t values = 0;                         ///< of a patch
  double dropout = 0;
};

/// Registers the tower; the layers behind the first `until` get no gradient.
PixtralTower pixtral_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision,
                           const TowerDefaults& defaults, std::int64_t until = kLargestDimension);
/// The defaults that count: those of `whole` where the configuration has no tower, else the
/// class's.
TowerDefaults pixtral_defaults(const ModelConfig& vision, const TowerDefaults& whole);

/// Writes its segments; rows [p, hidden] of each image are left in the chain.
void write_pixtral(ModelBuilder& m, const PixtralTower& tower);

/// Patches along the longer side of the largest image: the processor's class makes no more.
std::int64_t most_patches(const ModelConfig& vision, const TowerDefaults& defaults);

}  // namespace shardplan
