// Gemma 4 (models/gemma4): its text model, a tower for images and one for sound. The towers are
// counted; what they keep is not described, so that a job trains the text.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"
#include "model/architectures/towers.h"

namespace shardplan {
namespace {

/// Gemma4ClippableLinear, whose bounds are buffers.
void clipped(ModelBuilder& m, const std::string& name, std::int64_t in, std::int64_t out) {
  m.linear(name + ".linear", in, out);
}

void gemma4_vision(ModelBuilder& m, const ModelConfig& v) {
  const std::int64_t hidden = v.count({"hidden_size"}, 768);
  const std::int64_t ffn = v.count({"intermediate_size"}, 3072);
  const std::int64_t dim = v.count({"head_dim"}, 64);
  const std::int64_t width = checked_mul(dim, v.count({"num_attention_heads"}, 12));
  const std::int64_t grouped = checked_mul(dim, v.count({"num_key_value_heads"}, 12));
  const std::int64_t patch = side_of(v, "patch_size", 16);
  const std::string at = "model.vision_tower.";
  m.tensor(at + "patch_embedder.position_embedding_table",
           {2, v.count({"position_embedding_size"}, 10240), hidden}, ParameterKind::other);
  m.linear(at + "patch_embedder.input_proj", checked_mul(3, checked_mul(patch, patch)), hidden);
  m.begin_repeat(at + "encoder.layers", v.count({"num_hidden_layers"}, 16));
  clipped(m, "self_attn.q_proj", hidden, width);
  clipped(m, "self_attn.k_proj", hidden, grouped);
  clipped(m, "self_attn.v_proj", hidden, grouped);
  clipped(m, "self_attn.o_proj", width, hidden);
  m.rms_norm("self_attn.q_norm", dim);
  m.rms_norm("self_attn.k_norm", dim);
  clipped(m, "mlp.gate_proj", hidden, ffn);
  clipped(m, "mlp.up_proj", hidden, ffn);
  clipped(m, "mlp.down_proj", ffn, hidden);
  for (const char* name : {"input_layernorm", "post_attention_layernorm",
                           "pre_feedforward_layernorm", "post_feedforward_layernorm"})
    m.rms_norm(name, hidden);
  m.end_repeat();
}

void gemma4_convolutions(ModelBuilder& m, const ModelConfig& a, const std::string& at,
                         std::int64_t hidden) {
  std::vector<std::int64_t> channels = a.counts("subsampling_conv_channels");
  if (channels.empty()) channels = {128, 32};
  if (channels.size() != 2)
    a.fail("subsampling_conv_channels", "not two numbers", "two numbers of channels");
  std::int64_t in = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string layer = at + "layer" + std::to_string(i);
    m.tensor(layer + ".conv.weight", {channels[i], in, 3, 3}, ParameterKind::other);
    m.layer_norm(layer + ".norm", channels[i], false);
    in = channels[i];
  }
  m.linear(at + "input_proj_linear", checked_mul(channels[0] / 4, channels[1]), hidden);
}

void gemma4_audio(ModelBuilder& m, const ModelConfig& a) {
  const std::int64_t hidden = a.count({"hidden_size"}, 1024);
  const std::int64_t heads = a.count({"num_attention_heads"}, 8);
  a.require_divisible("hidden_size", hidden, "num_attention_heads", heads);
  const std::string at = "model.audio_tower.";
  gemma4_convolutions(m, a, at + "subsample_conv_projection.", hidden);
  m.begin_repeat(at + "layers", a.count({"num_hidden_layers"}, 12));
  for (const char* name : {"feed_forward1", "feed_forward2"}) {
    const std::string block(name);
    clipped(m, block + ".ffw_layer_1", hidden, 4 * hidden);
    clipped(m, block + ".ffw_layer_2", 4 * hidden, hidden);
    m.rms_norm(block + ".pre_layer_norm", hidden);
    m.rms_norm(block + ".post_layer_norm", hidden);
  }
  m.tensor("self_attn.per_dim_scale", {hidden / heads}, ParameterKind::other);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "post"})
    clipped(m, std::string("self_attn.") + name, hidden, hidden);
  m.linear("self_attn.relative_k_proj", hidden, hidden);
  clipped(m, "lconv1d.linear_start", hidden, 2 * hidden);
  clipped(m, "lconv1d.linear_end", hidden, hidden);
  m.tensor("lconv1d.depthwise_conv1d.weight", {hidden, 1, a.count({"conv_kernel_size"}, 5)},
           ParameterKind::other);
  m.rms_norm("lconv1d.pre_layer_norm", hidden);
  m.rms_norm("lconv1d.conv_norm", hidden);
  for (const char* name : {"norm_pre_attn", "norm_post_attn", "norm_out"}) m.rms_norm(name, hidden);
  m.end_repeat();
  m.linear(at + "output_proj", hidden, a.count({"output_proj_dims"}, 1536), true);
}

}  // namespace

Model build_gemma4(const ModelConfig& c, const BuildOptions& options) {
  require_text_alone(c, options);
  BuildOptions text_options = options;
  // Sliding layers are given a mask whatever the length: tokens of an image see each other.
  text_options.masked = c.text("text_config.use_bidirectional_attention", "") == "vision";
  Model text = text_inside(c, text_options, "gemma4_text", c.flag("tie_word_embeddings", true));
  rename_prefix(text, "model.", "model.language_model.");
  const std::int64_t hidden = text.facts.hidden;
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  // An empty object is a tower of the class's defaults; null is none.
  const auto has = [&](std::string_view key) { return c.entries(key) > 0 || c.is_list(key); };
  const bool sees = has("vision_config"), hears = has("audio_config");
  if (sees) gemma4_vision(m, c.inner("vision_config"));
  if (hears) gemma4_audio(m, c.inner("audio_config"));
  m.set_trains(projector_trains(options));
  if (sees)
    m.linear("model.embed_vision.embedding_projection",
             c.inner("vision_config").count({"hidden_size"}, 768), hidden);
  if (hears)
    m.linear("model.embed_audio.embedding_projection",
             c.inner("audio_config").count({"output_proj_dims"}, 1536), hidden);
  return with_images(m.build(), std::move(text), {});
}

}  // namespace shardplan
