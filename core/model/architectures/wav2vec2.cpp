// Wav2Vec2 (models/wav2vec2): convolutions over the samples of a sound, then an encoder. Counted:
// what its convolutions keep grows with samples, which a job does not say.
#include <string>
#include <vector>

#include "model/architectures/architectures.h"
#include "model/builder.h"

namespace shardplan {
namespace {

std::vector<std::int64_t> seven(const ModelConfig& c, std::string_view key,
                                std::vector<std::int64_t> fallback) {
  return c.is_list(key) ? c.counts(key) : fallback;
}

void register_convolutions(ModelBuilder& m, const ModelConfig& c,
                           const std::vector<std::int64_t>& channels) {
  const std::vector<std::int64_t> kernels = seven(c, "conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  if (channels.empty() || channels.size() != kernels.size())
    c.fail("conv_dim", "not as many numbers as conv_kernel has", "one for each convolution");
  const std::string norm = c.text("feat_extract_norm", "group");
  if (norm != "group" && norm != "layer")
    c.fail("feat_extract_norm", "unknown norm '" + norm + "'", "group or layer");
  std::int64_t in = 1;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const std::string at = "wav2vec2.feature_extractor.conv_layers." + std::to_string(i) + ".";
    m.tensor(at + "conv.weight", {channels[i], in, kernels[i]}, ParameterKind::other);
    if (c.flag("conv_bias", false)) m.tensor(at + "conv.bias", {channels[i]}, ParameterKind::bias);
    if (norm == "layer" || i == 0) m.layer_norm(at + "layer_norm", channels[i]);
    in = channels[i];
  }
}

void register_encoder(ModelBuilder& m, const ModelConfig& c, std::int64_t hidden) {
  const std::int64_t ffn = c.count({"intermediate_size"}, 3072);
  const std::int64_t kernel = c.count({"num_conv_pos_embeddings"}, 128);
  const std::int64_t groups = c.count({"num_conv_pos_embedding_groups"}, 16);
  c.require_divisible("hidden_size", hidden, "num_conv_pos_embedding_groups", groups);
  const std::string at = "wav2vec2.encoder.";
  const std::string positions = at + "pos_conv_embed.conv.";
  m.tensor(positions + "bias", {hidden}, ParameterKind::bias);
  m.tensor(positions + "parametrizations.weight.original0", {1, 1, kernel}, ParameterKind::other);
  m.tensor(positions + "parametrizations.weight.original1", {hidden, hidden / groups, kernel},
           ParameterKind::other);
  m.layer_norm(at + "layer_norm", hidden);
  m.begin_repeat(at + "layers", c.count({"num_hidden_layers"}, 12));
  for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"})
    m.linear(std::string("attention.") + name, hidden, hidden, true);
  m.layer_norm("layer_norm", hidden);
  m.linear("feed_forward.intermediate_dense", hidden, ffn, true);
  m.linear("feed_forward.output_dense", ffn, hidden, true);
  m.layer_norm("final_layer_norm", hidden);
  m.end_repeat();
}

}  // namespace

Model build_wav2vec2(const ModelConfig& c, const BuildOptions& options) {
  for (const char* flag : {"add_adapter", "use_weighted_layer_sum"})
    if (c.flag(flag, false)) c.fail(flag, "its tensors are not described", "false");
  if (c.optional_count({"adapter_attn_dim"}))
    c.fail("adapter_attn_dim", "adapters of attention are not described", "null");
  const std::int64_t hidden = c.count({"hidden_size"}, 768);
  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = c.count({"num_hidden_layers"}, 12),
               .vocabulary = c.count({"vocab_size"}, 32),
               .attention_heads = c.count({"num_attention_heads"}, 12)};
  c.require_divisible("hidden_size", hidden, "num_attention_heads", m.facts().attention_heads);
  if (c.number("mask_time_prob", 0.05) > 0 || c.number("mask_feature_prob", 0.0) > 0)
    m.tensor("wav2vec2.masked_spec_embed", {hidden}, ParameterKind::other);
  const auto channels = seven(c, "conv_dim", {512, 512, 512, 512, 512, 512, 512});
  register_convolutions(m, c, channels);
  m.layer_norm("wav2vec2.feature_projection.layer_norm", channels.back());
  m.linear("wav2vec2.feature_projection.projection", channels.back(), hidden, true);
  register_encoder(m, c, hidden);
  const ModelHead& head = options.head;
  if (head.kind == HeadKind::language_model)
    m.linear("lm_head", hidden, m.facts().vocabulary, true);
  if (head.kind == HeadKind::sequence) {
    const std::int64_t width = c.count({"classifier_proj_size"}, 256);
    m.linear("projector", hidden, width, true);
    m.linear("classifier", width, head.labels, true);
  }
  if (head.kind == HeadKind::token) m.linear("classifier", hidden, head.labels, true);
  return m.build();
}

}  // namespace shardplan
