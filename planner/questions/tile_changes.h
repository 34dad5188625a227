// Feed-forwards over parts of the sequence (ALST's TiledMLP), as a change to a job and a choice of
// a search.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "questions/changes.h"

namespace shardplan {

/// Parts that are worth trying: of as many tokens as the network is wide, which is what TiledMLP's
/// authors take (ArcticTraining, arctic_training/model/tiled_compute.py), but never more than save
/// anything. 0: no longer sequences
/// than that on a GPU, or a trainer without a place for them.
std::int64_t usual_tiles(const Model& model, const Plan& plan);

/// Of a job whose feed-forwards run over all of the sequence. Its price is their second forward
/// pass, which the changed job's estimate has.
std::vector<Change> tile_changes(const Model& model, const Plan& plan);

}  // namespace shardplan
