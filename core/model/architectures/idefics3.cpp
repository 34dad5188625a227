// Idefics 3 and SmolVLM (models/idefics3, models/smolvlm): SigLIP's tower over the pieces of an
// image, one linear over joined patches, a text model of Llama's kind.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"
#include "model/architectures/towers.h"

namespace shardplan {
namespace {

Model build_idefics3_like(const ModelConfig& c, const BuildOptions& options, ImagePlacing placing) {
  Model text = text_inside(c, options, "llama", c.flag("tie_word_embeddings", false));
  rename_prefix(text, "model.", "model.text_model.");
  const ModelConfig v = c.inner("vision_config");
  const TowerDefaults defaults{
      .hidden = 1152, .ffn = 3072, .layers = 12, .heads = 16, .image = 224, .patch = 32};
  const std::int64_t factor = c.count({"scale_factor"}, 2);
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  const Tower tower = idefics_tower(m, "model.vision_model.", v, defaults);
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  const std::int64_t joined = checked_mul(factor, factor);
  const LinearModule projection = m.linear("model.connector.modality_projection.proj",
                                           checked_mul(tower.hidden, joined), text.facts.hidden);
  if (!reads_images(c, options)) return with_images(m.build(), std::move(text), {});
  c.require_divisible("vision_config.image_size", tower.patches, "scale_factor", joined);
  write_tower(m, tower);
  write_tower_norm(m, tower);
  Graph& g = m.begin_segment("projector");
  const ValueId rows = g.view(g.chained_input({tower.hidden, Scale::patches}),
                              {checked_mul(tower.patches, tower.hidden), Scale::images});
  // pixel_shuffle: two copies.
  g.set_output(apply(g, projection, g.map(OpKind::copy, g.map(OpKind::copy, rows))));
  // Four by four pieces at most and the whole as one more (size: four times max_image_size).
  const ImagePieces image = pieces_of_image(c, options, text.facts, tower.patches / joined, 17);
  return with_images(m.build(), std::move(text),
                     {.tokens = image.tokens,
                      .pieces = image.pieces,
                      .patches = tower.patches,
                      .values = tower.values},
                     0, placing);
}

}  // namespace

Model build_idefics3(const ModelConfig& c, const BuildOptions& options) {
  return build_idefics3_like(c, options, ImagePlacing::scattered);
}

Model build_smolvlm(const ModelConfig& c, const BuildOptions& options) {
  return build_idefics3_like(c, options, ImagePlacing::chosen);
}

}  // namespace shardplan
