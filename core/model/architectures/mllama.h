// The tower of Llama 3.2 with vision (models/mllama): tiles of an image, padded to a whole number
// of eights of rows, which see each other; layers of the tower are read beside its last one.
#pragma once

#include <vector>

#include "model/builder.h"
#include "model/config.h"
#include "model/layers/mlp.h"

namespace shardplan {

struct MllamaTowerLayer {
  LinearModule q, k, v, out, up, down;
  NormModule before, after;
  ParameterId attention_gate = kNone, mlp_gate = kNone;  ///< of the global layers
};
/// A trained number times rows of a table that an image's form picks.
struct MllamaTilePlaces {
  ParameterId gate = kNone;
  EmbeddingModule table;
};

struct MllamaTower {
  std::int64_t width = 0, ffn = 0, heads = 0, layers = 0, global_layers = 0;
  std::int64_t tiles = 0, forms = 0;     ///< of an image at most; its forms
  std::int64_t patches = 0, values = 0;  ///< of a tile; numbers of an image
  std::vector<std::int64_t> read;        ///< layers whose results are read, in order
  Activation activation = Activation::gelu;
  ParameterId class_token = kNone, patch = kNone, gate = kNone, places = kNone;
  EmbeddingModule tile_places;
  MllamaTilePlaces before, after;
  NormModule first, last;
  std::vector<MllamaTowerLayer> runs;  ///< of layers, up to each that is read and the last
  MllamaTowerLayer global;
  std::int64_t rows() const { return patches + 1; }
  std::int64_t padded() const { return round_up(rows(), 8); }
  /// Of what the network reads of each row.
  std::int64_t features() const { return width * (1 + std::ssize(read)); }
};

/// Registers the tower below `prefix`.
MllamaTower mllama_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision);
/// Its segments; the last one leaves the rows of all tiles of each image, each features() wide.
void write_mllama_tower(ModelBuilder& m, const MllamaTower& tower);

}  // namespace shardplan
