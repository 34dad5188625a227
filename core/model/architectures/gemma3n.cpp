// Gemma 3n (models/gemma3n): its text model, a tower for images and one for sounds. The towers are
// counted: a job that brings them nothing keeps nothing of them and makes no gradients. But the
// vocabularies of both are looked up for every token, whatever it is.
#include "model/architectures/gemma3n.h"

#include "model/architectures/architectures.h"
#include "model/architectures/registry.h"

namespace shardplan {
namespace {

constexpr std::int64_t kConvolutions = 2;  ///< in front of the layers for sounds

/// A list of numbers of the two convolutions; of the kernel and the step the class has 3 and 2.
std::vector<std::int64_t> two_channels(const ModelConfig& a) {
  std::vector<std::int64_t> channels = a.counts("sscp_conv_channel_size");
  if (channels.empty()) channels = {128, 32};
  if (std::ssize(channels) != kConvolutions)
    a.fail("sscp_conv_channel_size", "not two numbers", "two numbers of channels");
  return channels;
}

void gemma3n_convolutions(ModelBuilder& m, const ModelConfig& a, const std::string& at,
                          std::int64_t hidden) {
  constexpr std::int64_t kKernel = 3, kStep = 2;
  std::int64_t in = 1, bands = a.count({"input_feat_size"}, 128);
  const std::vector<std::int64_t> channels = two_channels(a);
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const std::string layer = at + "conv_" + std::to_string(i);
    m.tensor(layer + ".conv.weight", {channels[i], in, kKernel, kKernel}, ParameterKind::other);
    m.rms_norm(layer + ".norm", channels[i]);
    in = channels[i];
    bands = (bands + 2 - kKernel) / kStep + 1;
  }
  m.linear(at + "input_proj_linear", checked_mul(bands, in), hidden);
}

void feed_forward(ModelBuilder& m, const std::string& name, std::int64_t hidden) {
  m.rms_norm(name + ".pre_layer_norm", hidden);
  m.linear(name + ".ffw_layer_1", hidden, 4 * hidden);
  m.linear(name + ".ffw_layer_2", 4 * hidden, hidden);
  m.rms_norm(name + ".post_layer_norm", hidden);
}

/// Gemma3nAudioEncoder: a conformer.
void gemma3n_audio(ModelBuilder& m, const ModelConfig& a, const std::string& at) {
  const std::int64_t hidden = a.count({"hidden_size"}, 1536);
  const std::int64_t heads = a.count({"conf_num_attention_heads"}, 8);
  a.require_divisible("hidden_size", hidden, "conf_num_attention_heads", heads);
  gemma3n_convolutions(m, a, at + "subsample_conv_projection.", hidden);
  m.begin_repeat(at + "conformer", a.count({"conf_num_hidden_layers"}, 12));
  feed_forward(m, "ffw_layer_start", hidden);
  m.rms_norm("attention.pre_attn_norm", hidden);
  m.tensor("attention.attn.per_dim_scale", {hidden / heads}, ParameterKind::other);
  m.linear("attention.attn.relative_position_embedding.pos_proj", hidden, hidden);
  for (const char* name : {"q_proj", "k_proj", "v_proj"})
    m.linear(std::string("attention.attn.") + name, hidden, hidden);
  m.linear("attention.post", hidden, hidden);
  m.rms_norm("attention.post_norm", hidden);
  m.rms_norm("lconv1d.pre_layer_norm", hidden);
  m.linear("lconv1d.linear_start", hidden, 2 * hidden);
  m.tensor("lconv1d.depthwise_conv1d.weight", {hidden, 1, a.count({"conf_conv_kernel_size"}, 5)},
           ParameterKind::other);
  m.rms_norm("lconv1d.conv_norm", hidden);
  m.linear("lconv1d.linear_end", hidden, hidden);
  feed_forward(m, "ffw_layer_end", hidden);
  m.rms_norm("norm", hidden);
  m.end_repeat();
}

/// What rows of its tower alone come through gets no gradient where there are none.
Gemma3nVocabulary vocabulary(ModelBuilder& m, const std::string& at, const ModelConfig& c,
                             std::int64_t fallback, std::int64_t text_hidden) {
  const BuildOptions& options = m.options();
  const bool trains =
      options.counts_only || options.images.frozen != FrozenParts::tower_and_projector;
  const std::int64_t hidden = c.count({"hidden_size"}, fallback);
  Gemma3nVocabulary v;
  m.set_trains(trains);
  v.words = m.embedding(at + "embedding", c.count({"vocab_size"}, 128), hidden);
  v.norm = m.rms_norm(at + "hard_embedding_norm", hidden);
  m.set_trains(options.counts_only);
  m.rms_norm(at + "soft_embedding_norm", hidden);
  m.set_trains(trains);
  v.projection = m.linear(at + "embedding_projection", hidden, text_hidden);
  return v;
}

}  // namespace

Model build_gemma3n(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig text = c.inner("text_config");
  check_layer_counts(text);
  const Gemma3n t = read_gemma3n(text, options);
  ModelBuilder m(options);
  m.facts() = gemma3n_facts(t);
  m.facts().text_type = "gemma3n_text";
  m.facts().image = {.has_tower = true, .text_alone = true};
  const ModelConfig vision = c.inner("vision_config"), audio = c.inner("audio_config");
  // Towers that are given nothing get no gradient.
  const bool train = options.counts_only;
  m.set_trains(train);
  declare_gemma3n_tower(m, "model.vision_tower.timm_model.", vision);
  m.set_trains(true);
  const Gemma3nTextModules modules = declare_gemma3n_text(m, t, "model.language_model.");
  m.set_trains(train);
  gemma3n_audio(m, audio, "model.audio_tower.");
  m.set_like_blocks(true);
  const Gemma3nVocabulary seen = vocabulary(m, "model.embed_vision.", vision, 2048, t.hidden);
  const Gemma3nVocabulary heard = vocabulary(m, "model.embed_audio.", audio, 1536, t.hidden);
  m.set_like_blocks(false);
  m.set_trains(true);
  const auto head = c.flag("tie_word_embeddings", true) ? m.tied_linear("lm_head", modules.words)
                                                        : m.linear("lm_head", t.hidden, t.vocab);
  if (options.counts_only) return m.build();
  write_gemma3n_text(m, t, modules, head, {seen, heard});
  return m.build();
}

}  // namespace shardplan
