// Gemma 4 (models/gemma4): its text model, a tower for images and one for sounds. The tower for
// sounds is counted: a job brings it none, so that it keeps nothing and gets no gradient.
#include "model/architectures/gemma4.h"
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"

#include <algorithm>
#include <optional>

namespace shardplan {
namespace {

/// As the tower of images has them; what the bounds keep is not described for sounds.
void clipped(ModelBuilder& m, const std::string& name, std::int64_t in, std::int64_t out) {
  clipped_linear(m, name, in, out, false);
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

/// The class has its text model behind the tower of images and before the rest.
void order_groups(Model& model) {
  const auto rank = [&](const ParameterGroup& group) {
    const std::string& name = model.parameters[static_cast<std::size_t>(group.first)].name;
    if (name.starts_with("model.vision_tower.")) return 0;
    if (name.starts_with("model.language_model.")) return 1;
    return name.starts_with("model.") ? 2 : 3;
  };
  std::stable_sort(
      model.groups.begin(), model.groups.end(),
      [&](const ParameterGroup& a, const ParameterGroup& b) { return rank(a) < rank(b); });
}

/// Gemma4MultimodalEmbedder: a norm without a weight and a linear.
void write_projector(ModelBuilder& m, const LinearModule& projector, std::int64_t tokens) {
  Graph& g = m.begin_segment("projector");
  const ValueId rows = g.chained_input({checked_mul(tokens, projector.in), Scale::images});
  g.set_output(apply(g, projector, gemma4_norm(g, rows, projector.in)));
}

}  // namespace

Model build_gemma4(const ModelConfig& c, const BuildOptions& options) {
  BuildOptions text_options = options;
  // Sliding layers are given a mask whatever the length: tokens of an image see each other.
  text_options.masked = c.text("text_config.use_bidirectional_attention", "") == "vision";
  Model text = text_inside(c, text_options, "gemma4_text", c.flag("tie_word_embeddings", true));
  rename_prefix(text, "model.", "model.language_model.");
  const std::int64_t hidden = text.facts.hidden;
  // An empty object is a tower of the class's defaults; null is none.
  const auto has = [&](std::string_view key) { return c.entries(key) > 0 || c.is_list(key); };
  const bool sees = has("vision_config"), hears = has("audio_config");
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  std::optional<Gemma4Tower> tower;
  if (sees) tower = gemma4_tower(m, "model.vision_tower.", c.inner("vision_config"));
  m.set_trains(options.counts_only);
  if (hears) gemma4_audio(m, c.inner("audio_config"));
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  LinearModule projector;
  if (sees) projector = m.linear("model.embed_vision.embedding_projection", tower->hidden, hidden);
  m.set_trains(options.counts_only);
  if (hears)
    m.linear("model.embed_audio.embedding_projection",
             c.inner("audio_config").count({"output_proj_dims"}, 1536), hidden);
  const bool reads = reads_images(c, options);
  ImageFacts facts;
  if (reads && !sees)
    c.fail("vision_config", "without a tower the network reads no images", "workload.images 0");
  if (reads) {
    const Gemma4Image image = gemma4_image(c, options, *tower, text.facts);
    write_gemma4_tower(m, *tower, image);
    write_projector(m, projector, image.tokens);
    facts = {.tokens = image.tokens,
             .patches = image.patches,
             .values = checked_mul(image.patches, tower->patches.in)};
  }
  Model all = with_images(m.build(), std::move(text), facts);
  order_groups(all);
  return all;
}

}  // namespace shardplan
