// Qwen 2-Audio (models/qwen2_audio): Whisper's encoder, whose rows are joined in pairs, one linear
// and a text model, whose head is never its embedding.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/layers/sequence_layer.h"

namespace shardplan {

Model build_qwen2_audio(const ModelConfig& c, const BuildOptions& options) {
  if (c.entries("text_config") == 0) c.fail("text_config", "missing", "the text model's keys");
  Model text = text_inside(c, options, "qwen2", false);
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig a = c.inner("audio_config");
  const std::int64_t width = a.count({"d_model"}, 1280);
  const std::int64_t bins = a.count({"num_mel_bins"}, 128);
  SequenceShape shape;
  shape.hidden = width;
  shape.heads = a.count({"encoder_attention_heads"}, 20);
  shape.ffn = a.count({"encoder_ffn_dim"}, 5120);
  shape.key_bias = false;
  const std::string at = "model.audio_tower.";
  ModelBuilder m(options);
  m.tensor(at + "conv1.weight", {width, bins, 3}, ParameterKind::linear);
  m.tensor(at + "conv1.bias", {width}, ParameterKind::bias);
  m.tensor(at + "conv2.weight", {width, width, 3}, ParameterKind::linear);
  m.tensor(at + "conv2.bias", {width}, ParameterKind::bias);
  m.freeze(
      m.embedding(at + "embed_positions", a.count({"max_source_positions"}, 1500), width).weight);
  m.begin_repeat(at + "layers", a.count({"encoder_layers"}, 32));
  sequence_layer(m, shape, false);
  m.end_repeat();
  m.layer_norm(at + "layer_norm", width);
  m.linear("model.multi_modal_projector.linear", width, text.facts.hidden, true);
  return joined(m.build(), std::move(text));
}

}  // namespace shardplan
