// The tensors of vision towers, as the classes of transformers register them below `prefix`.
#pragma once

#include <string>

#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

/// Patches along both sides of an image: image_size and patch_size as numbers or [height, width].
std::int64_t patches_of(const ModelConfig& vision, std::int64_t image, std::int64_t patch);
/// A number, or the first of a list.
std::int64_t side_of(const ModelConfig& vision, std::string_view key, std::int64_t fallback);

struct TowerDefaults {
  std::int64_t hidden = 768, ffn = 3072, layers = 12, heads = 12, image = 224, patch = 16;
  bool pooling_head = true;  ///< SigLIP's, unless vision_use_head says otherwise
};
void clip_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision,
                const TowerDefaults& defaults);
void siglip_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision,
                  const TowerDefaults& defaults);
void pixtral_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision,
                   const TowerDefaults& defaults);
/// CLIP's and SigLIP's encoder layers, of images and of text.
void pair_layers(ModelBuilder& m, const std::string& list, std::int64_t layers, std::int64_t hidden,
                 std::int64_t ffn);

/// The tower that vision_config names by its model_type.
void named_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& vision,
                 std::string_view type, const TowerDefaults& defaults);

}  // namespace shardplan
