// GLM-4 0414 (models/glm4): norms on both sides of the sublayers, gate and up in one linear, and
// interleaved rotary embeddings over half of every head.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

DecoderDescription read_glm(const ModelConfig& config) {
  DecoderDescription d = read_decoder(config, {.hidden = 4096,
                                               .ffn = 13696,
                                               .layers = 40,
                                               .heads = 32,
                                               .kv_heads = 2,
                                               .head_dim = 128,
                                               .vocab = 151552,
                                               .positions = 131072});
  d.qkv_bias = config.flag("attention_bias", true);
  d.rotary = RotaryKind::interleaved;
  d.rotary_dim = partial_rotary_dim(config, d.head_dim, 0.5);
  d.mlp = MlpKind::fused_gated;
  d.norms = {{NormPlace::before_attention, "input_layernorm"},
             {NormPlace::before_mlp, "post_attention_layernorm"},
             {NormPlace::after_attention, "post_self_attn_layernorm"},
             {NormPlace::after_mlp, "post_mlp_layernorm"}};
  return d;
}

Model build_glm4(const ModelConfig& config, const BuildOptions& options) {
  return build_decoder(read_glm(config), options);
}

}  // namespace shardplan
