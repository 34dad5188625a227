// Vision towers: their tensors, as the classes of transformers register them below `prefix`, and
// what their layers do.
#pragma once

#include <optional>
#include <string>

#include "model/builder.h"
#include "model/config.h"
#include "model/layers/attention.h"
#include "model/layers/mlp.h"

namespace shardplan {

/// Patches along both sides of an image: image_size and patch_size as numbers or [height, width].
std::int64_t patches_of(const ModelConfig& vision, std::int64_t image, std::int64_t patch);
/// A number, or the first of a list.
std::int64_t side_of(const ModelConfig& vision, std::string_view key, std::int64_t fallback);

struct TowerDefaults {
  std::int64_t hidden = 768, ffn = 3072, layers = 12, heads = 12, image = 224, patch = 16;
  bool pooling_head = true;  ///< SigLIP's, unless vision_use_head says otherwise
};
/// The modules of one of CLIP's or SigLIP's layers.
struct PairLayer {
  LinearModule q, k, v, out, up, down;
  NormModule before, after;
};

/// SigLIP's head: a trained row that attends to the rows of an image.
struct PoolingHead {
  ParameterId probe = kNone, joined = kNone, joined_bias = kNone;  ///< joined: of q, k and v
  LinearModule out, up, down;
  NormModule norm;
};

/// A tower of CLIP's kind, which sees images of one size.
struct Tower {
  ParameterId kernel = kNone, kernel_bias = kNone;  ///< of the patches
  ParameterId class_token = kNone;  ///< a row beside the patches; kNone: there is none
  EmbeddingModule places;
  bool copies_pixels = false;  ///< the class puts them together anew before the tower
  bool own_places = false;     ///< looked up for each image apart, by indices that are kept
  std::optional<NormModule> before, after;  ///< the layers
  std::optional<PoolingHead> head;
  PairLayer layer;
  std::int64_t hidden = 0, heads = 0;
  std::int64_t layers = 0;   ///< that are read
  std::int64_t patches = 0;  ///< of an image
  std::int64_t values = 0;   ///< of an image: its pixels in all channels
  double dropout = 0;
  Activation activation = Activation::gelu;
  std::int64_t rows() const { return patches + (class_token == kNone ? 0 : 1); }
};

/// What of a tower the network reads. The rest runs too, and gets no gradient.
struct TowerUse {
  std::int64_t layers = kLargestDimension;  ///< the first ones
  bool norm = true;                         ///< the one behind the last layer
  bool head = false;                        ///< the pooling one
};

Tower clip_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision,
                 const TowerDefaults& defaults, const TowerUse& use = {});
Tower siglip_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision,
                   const TowerDefaults& defaults, const TowerUse& use = {});
/// SigLIP's as Idefics 3 and SmolVLM have it: no head, places by position in the whole image.
Tower idefics_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision,
                    const TowerDefaults& defaults);
/// Which class registers a layer: SigLIP's has each norm before what follows it.
enum class PairOrder : std::uint8_t { clip, siglip };
/// CLIP's and SigLIP's encoder layers, of images and of text.
PairLayer pair_layers(ModelBuilder& m, const std::string& list, std::int64_t layers,
                      std::int64_t hidden, std::int64_t ffn, PairOrder order,
                      std::int64_t start = 0);

/// One of these layers over x.
ValueId apply(Graph& g, const PairLayer& layer, const AttentionShape& shape, AttentionKind kind,
              Activation activation, ValueId x);

/// The tower of CLIP's kind that vision_config names by its model_type.
Tower named_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision,
                  std::string_view type, const TowerDefaults& defaults, const TowerUse& use = {});

/// Writes the segments of a tower: its patches, and the layers that are read, whose rows
/// [p, hidden] of each image are left in the chain.
void write_tower(ModelBuilder& m, const Tower& tower);
/// Its last norm, a segment of its own.
void write_tower_norm(ModelBuilder& m, const Tower& tower);
/// Its pooling head over normal rows: one row for each image.
ValueId pooled(Graph& g, const ModelBuilder& m, const Tower& tower, ValueId rows);

}  // namespace shardplan
