// The gradients of a tiled feed-forward's weights while its parts run (TileSums).
#pragma once

#include <map>
#include <vector>

#include "program/tape/parts.h"

namespace shardplan::tape {

class TileGradients {
 public:
  /// `count`: parts. The function begins: zeros where it has some.
  TileGradients(Parts& parts, const TiledPart& tiled, std::int64_t count);

  /// The gradient of a weight for part `number` appears.
  void arrive(ParameterId id, std::int64_t number);
  void end_part();
  /// All parts have run: what is left is handed on.
  void end();

 private:
  StorageId tensor(ParameterId id, DType type);
  void add(ParameterId id);
  void sum(ParameterId id);

  Parts& p_;
  TileSums how_;
  std::int64_t count_;
  std::vector<ParameterId> weights_;         ///< that train, each once
  std::vector<StorageId> zeros_;             ///< by place in weights_
  std::map<ParameterId, StorageId> so_far_;  ///< sums in the place of the gradient
  std::map<ParameterId, StorageId> of_part_;
  StorageId named_ = kExternal;  ///< the last gradient of the part before: a name in a loop has it
};

}  // namespace shardplan::tape
