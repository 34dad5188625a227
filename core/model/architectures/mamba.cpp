// Mamba (models/mamba) and Mamba 2 (models/mamba2).
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"

namespace shardplan {
namespace {

/// Embeddings, `layers` mixers behind a norm, a final norm and the head.
template <typename Mixer>
Model build_backbone(const ModelConfig& c, const BuildOptions& options, const CountedStack& stack,
                     std::int64_t layers, Mixer&& mixer) {
  const ModelFacts facts{.layers = layers};
  CountedStack s = stack;
  s.embedding = "backbone.embeddings";
  s.norm = "backbone.norm_f";
  s.vocabulary = c.count({"vocab_size"}, stack.vocabulary);
  s.tied = c.flag("tie_word_embeddings", stack.tied);
  return counted_decoder(options, facts, s, [&](ModelBuilder& m) {
    m.begin_repeat("backbone.layers", layers);
    m.rms_norm("norm", s.hidden);
    mixer(m);
    m.end_repeat();
  });
}

void convolution(ModelBuilder& m, const ModelConfig& c, std::int64_t channels) {
  m.tensor("mixer.conv1d.weight", {channels, 1, c.count({"conv_kernel"}, 4)}, ParameterKind::other);
  if (c.flag("use_conv_bias", true)) m.tensor("mixer.conv1d.bias", {channels}, ParameterKind::bias);
}

}  // namespace

Model build_mamba(const ModelConfig& c, const BuildOptions& options) {
  const std::int64_t hidden = c.count({"hidden_size", "d_model"}, 768);
  const std::int64_t state = c.count({"state_size"}, 16);
  const std::int64_t inner = checked_mul(c.count({"expand"}, 2), hidden);
  const bool bias = c.flag("use_bias", false);
  const bool automatic = !c.has("time_step_rank") || c.is_text("time_step_rank");
  const std::int64_t rank = automatic ? ceil_div(hidden, 16) : c.count({"time_step_rank"}, 48);
  return build_backbone(c, options, {.hidden = hidden, .vocabulary = 50280, .tied = true},
                        c.count({"num_hidden_layers", "n_layer"}, 32), [&](ModelBuilder& m) {
                          m.tensor("mixer.A_log", {inner, state}, ParameterKind::other);
                          m.tensor("mixer.D", {inner}, ParameterKind::other);
                          convolution(m, c, inner);
                          m.linear("mixer.in_proj", hidden, 2 * inner, bias);
                          m.linear("mixer.x_proj", inner, rank + 2 * state);
                          m.linear("mixer.dt_proj", rank, inner, true);
                          m.linear("mixer.out_proj", inner, hidden, bias);
                        });
}

Model build_mamba2(const ModelConfig& c, const BuildOptions& options) {
  const std::int64_t hidden = c.count({"hidden_size", "d_model"}, 4096);
  const std::int64_t heads = c.count({"num_heads"}, 128);
  const std::int64_t inner = checked_mul(c.count({"expand"}, 2), hidden);
  const std::int64_t mixed =
      inner + 2 * checked_mul(c.count({"n_groups"}, 8), c.count({"state_size"}, 128));
  const bool bias = c.flag("use_bias", false);
  return build_backbone(c, options, {.hidden = hidden, .vocabulary = 32768},
                        c.count({"num_hidden_layers", "n_layer"}, 64), [&](ModelBuilder& m) {
                          m.tensor("mixer.dt_bias", {heads}, ParameterKind::other);
                          m.tensor("mixer.A_log", {heads}, ParameterKind::other);
                          m.tensor("mixer.D", {heads}, ParameterKind::other);
                          convolution(m, c, mixed);
                          m.linear("mixer.in_proj", hidden, inner + mixed + heads, bias);
                          m.rms_norm("mixer.norm", inner);
                          m.linear("mixer.out_proj", inner, hidden, bias);
                        });
}

}  // namespace shardplan
