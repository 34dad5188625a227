// What the parts of Gemma 4 (models/gemma4) share: its norm and its tower of images.
#pragma once

#include <vector>

#include "model/builder.h"
#include "model/config.h"
#include "model/layers/mlp.h"

namespace shardplan {

/// Gemma4RMSNorm over groups of `width` elements of x: the root is a power, which keeps what it is
/// taken of; without `m` no weight. In fp32, the result in the type of x.
ValueId gemma4_norm(Graph& g, ValueId x, std::int64_t width, const NormModule* m = nullptr);
ValueId gemma4_norm(Graph& g, const NormModule& m, ValueId x);

/// Gemma4ClippableLinear: its bounds are buffers, and both the input and the result are clamped.
struct ClippedLinear {
  LinearModule linear;
  bool clips = false;
};
/// Registers name.linear.
ClippedLinear clipped_linear(ModelBuilder& m, const std::string& name, std::int64_t in,
                             std::int64_t out, bool clips);
ValueId apply(Graph& g, const ClippedLinear& l, ValueId x);

struct Gemma4TowerLayer {
  ClippedLinear q, k, v, o, gate, up, down;
  NormModule q_norm, k_norm, before, after, before_mlp, after_mlp;
};

/// Gemma4VisionModel: all images of a batch have as many patches, filled up with empty ones, and
/// squares of `pool` patches are averaged to a token.
struct Gemma4Tower {
  ParameterId places = kNone;  ///< [2, positions, hidden]: of columns and of rows
  LinearModule patches;
  Gemma4TowerLayer layer;
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t positions = 0, pool = 3;
  double dropout = 0;
  bool standardizes = false;
  Activation activation = Activation::gelu;
};

Gemma4Tower gemma4_tower(ModelBuilder& m, const std::string& at, const ModelConfig& vision);

/// Patches and tokens of an image as the job and the processor have them.
struct Gemma4Image {
  std::int64_t tokens = 0;   ///< that are left of it
  std::int64_t patches = 0;  ///< that the tower is given, empty ones among them
  bool padded = true;        ///< some are empty
};
/// The tokens of the job, or as many as the processor makes at most, which `facts` then says.
Gemma4Image gemma4_image(const ModelConfig& config, const BuildOptions& options,
                         const Gemma4Tower& tower, ModelFacts& facts);

/// The segments of the tower. The last leaves the rows of the tokens, [tokens, hidden].
void write_gemma4_tower(ModelBuilder& m, const Gemma4Tower& tower, const Gemma4Image& image);

}  // namespace shardplan
