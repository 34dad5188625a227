// OLMo 2 (models/olmo2): norms after the sublayers instead of before them, and over all of q and k.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

DecoderDescription read_olmo2(const ModelConfig& config) {
  DecoderDescription d = read_decoder(
      config,
      {.hidden = 4096, .ffn = 11008, .layers = 32, .heads = 32, .vocab = 50304, .positions = 2048});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::whole;
  d.head_norms_at = HeadNormsAt::projection;
  d.query_key_kind = NormKind::rms_wide;
  d.rotary = RotaryKind::f32_tables;
  d.norm = NormKind::rms_wide;
  d.norms = {{NormPlace::after_attention, "post_attention_layernorm"},
             {NormPlace::after_mlp, "post_feedforward_layernorm"}};
  return d;
}

Model build_olmo2(const ModelConfig& config, const BuildOptions& options) {
  return build_decoder(read_olmo2(config), options);
}

}  // namespace shardplan
