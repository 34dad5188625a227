// Phi 3, 3.5, 4 and 4-mini (models/phi3): Llama with one linear for q, k and v and one for gate
// and up.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_phi3(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(
      config,
      {.hidden = 3072, .ffn = 8192, .layers = 32, .heads = 32, .vocab = 32064, .positions = 4096});
  d.fused_qkv = true;
  d.rotary = RotaryKind::sliced;
  d.rotary_dim = partial_rotary_dim(config, d.head_dim, 1.0);
  d.mlp = MlpKind::fused_gated;
  d.attention_residual_dropout = d.mlp_residual_dropout = config.number("resid_pdrop", 0.0);
  d.window = config.nullable_count("sliding_window", {}).value_or(0);
  return build_decoder(d, options);
}

}  // namespace shardplan
