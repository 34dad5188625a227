// Mamba (models/mamba) and Mamba 2 (models/mamba2).
#include "model/architectures/architectures.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/scan_kernels.h"
#include "model/layers/selective_scan.h"
#include "model/layers/state_space.h"

namespace shardplan {
namespace {

/// A mixer behind a norm.
template <typename Mixer>
struct MambaLayer {
  NormModule norm;
  Mixer mixer;
};

/// Embeddings, `layers` mixers, a final norm and the head. The hidden states between layers are
/// fp32 (residual_in_fp32), and the norm reads them in the type of its weight.
template <typename Declare>
Model build_backbone(const ModelConfig& c, const BuildOptions& options, std::int64_t hidden,
                     std::int64_t vocabulary, bool tied, std::int64_t usual_layers,
                     Declare&& declare) {
  require_training(c, options, "state spaces");
  const std::int64_t layers = c.count({"num_hidden_layers", "n_layer"}, usual_layers);
  const bool wide = c.flag("residual_in_fp32", true);
  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = c.count({"vocab_size"}, vocabulary),
               .undivided = true,
               .supports_flash_attn = false};
  note_state_kernels(m, "state spaces", "mamba_ssm and causal_conv1d");
  const DecoderStack stack{.hidden = hidden,
                           .vocabulary = m.facts().vocabulary,
                           .tied = c.flag("tie_word_embeddings", tied),
                           .runs = {{.start = 0, .count = layers}},
                           .embedding = "backbone.embeddings",
                           .layers = "backbone.layers",
                           .final_norm = "backbone.norm_f",
                           .attends = false,
                           .wide_stream = wide,
                           .logits = LogitMap::upcast};
  return build_decoder(
      m, stack,
      [&](ModelBuilder& b, int) {
        const NormModule norm = b.rms_norm("norm", hidden);
        return MambaLayer<decltype(declare(b))>{norm, declare(b)};
      },
      [&](Graph& g, const auto& l, int, const Positions&, ValueId x) {
        const ValueId weight = parameter_value(g, m, l.norm.weight, hidden);
        const ValueId normal = rms_norm(g, l.norm, g.map(OpKind::to_like, x, weight));
        const ValueId residual = wide ? g.map(OpKind::to_f32, x) : x;
        return g.map(OpKind::add, residual, apply(g, m, l.mixer, normal));
      });
}

}  // namespace

Model build_mamba(const ModelConfig& c, const BuildOptions& options) {
  SelectiveScanShape s;
  s.hidden = c.count({"hidden_size", "d_model"}, 768);
  s.state = c.count({"state_size"}, 16);
  s.kernel = c.count({"conv_kernel"}, 4);
  s.inner = checked_mul(c.count({"expand"}, 2), s.hidden);
  s.bias = c.flag("use_bias", false);
  s.conv_bias = c.flag("use_conv_bias", true);
  s.rank = time_step_rank(c, "time_step_rank", s.hidden, 48);
  return build_backbone(c, options, s.hidden, 50280, true, 32,
                        [&](ModelBuilder& m) { return selective_scan(m, s); });
}

Model build_mamba2(const ModelConfig& c, const BuildOptions& options) {
  StateSpaceShape s;
  s.hidden = c.count({"hidden_size", "d_model"}, 4096);
  s.heads = c.count({"num_heads"}, 128);
  s.inner = checked_mul(c.count({"expand"}, 2), s.hidden);
  s.groups = c.count({"n_groups"}, 8);
  s.state = c.count({"state_size"}, 128);
  s.kernel = c.count({"conv_kernel"}, 4);
  s.chunk = c.count({"chunk_size"}, 256);
  s.in_bias = s.out_bias = c.flag("use_bias", false);
  s.conv_bias = c.flag("use_conv_bias", true);
  return build_backbone(c, options, s.hidden, 32768, false, 64,
                        [&](ModelBuilder& m) { return state_space(m, c, s); });
}

}  // namespace shardplan
