// Pairs of a text and an image encoder: CLIP (models/clip) and SigLIP (models/siglip).
#include "model/architectures/architectures.h"
#include "model/architectures/towers.h"

namespace shardplan {
namespace {

struct PairText {
  std::int64_t hidden, ffn, layers, vocabulary, positions;
};

PairText read_text(const ModelConfig& t, const PairText& d) {
  return {.hidden = t.count({"hidden_size"}, d.hidden),
          .ffn = t.count({"intermediate_size"}, d.ffn),
          .layers = t.count({"num_hidden_layers"}, d.layers),
          .vocabulary = t.count({"vocab_size"}, d.vocabulary),
          .positions = t.count({"max_position_embeddings"}, d.positions)};
}

void register_text(ModelBuilder& m, const PairText& t, PairOrder order) {
  const std::string at = "text_model.";
  m.facts() = {.hidden = t.hidden,
               .layers = t.layers,
               .vocabulary = t.vocabulary,
               .max_positions = t.positions};
  m.embedding(at + "embeddings.token_embedding", t.vocabulary, t.hidden);
  m.embedding(at + "embeddings.position_embedding", t.positions, t.hidden);
  pair_layers(m, at + "encoder.layers", t.layers, t.hidden, t.ffn, order);
  m.layer_norm(at + "final_layer_norm", t.hidden);
}

/// Keys that older files repeat as "vision_config_dict" and that then count.
ModelConfig part(const ModelConfig& c, const std::string& key) {
  return c.inner(c.entries(key + "_dict") > 0 ? key + "_dict" : key);
}

}  // namespace

Model build_clip(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig v = part(c, "vision_config");
  const PairText t =
      read_text(part(c, "text_config"),
                {.hidden = 512, .ffn = 2048, .layers = 12, .vocabulary = 49408, .positions = 77});
  const std::int64_t out = c.count({"projection_dim"}, 512);
  ModelBuilder m(options);
  m.tensor("logit_scale", {}, ParameterKind::other);
  register_text(m, t, PairOrder::clip);
  clip_tower(m, "vision_model.", v, {.patch = 32});
  m.linear("visual_projection", v.count({"hidden_size"}, 768), out);
  m.linear("text_projection", t.hidden, out);
  return m.build();
}

Model build_siglip(const ModelConfig& c, const BuildOptions& options) {
  const PairText t =
      read_text(c.inner("text_config"),
                {.hidden = 768, .ffn = 3072, .layers = 12, .vocabulary = 32000, .positions = 64});
  ModelBuilder m(options);
  m.tensor("logit_scale", {1}, ParameterKind::other);
  m.tensor("logit_bias", {1}, ParameterKind::other);
  register_text(m, t, PairOrder::siglip);
  m.linear("text_model.head", t.hidden, c.inner("text_config").count({"projection_size"}, t.hidden),
           true);
  siglip_tower(m, "vision_model.", c.inner("vision_config"), {});
  return m.build();
}

}  // namespace shardplan
