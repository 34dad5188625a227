// Command-R (models/cohere): a parallel block with one LayerNorm written out in fp32, rotation in
// fp32 and scaled logits.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_cohere(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 8192,
                                               .ffn = 22528,
                                               .layers = 40,
                                               .heads = 64,
                                               .vocab = 256000,
                                               .positions = 8192,
                                               .tied = true});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  if (config.flag("use_qk_norm", false)) {
    d.query_key_norm = QueryKeyNorm::weight_rows;
    d.query_key_kind = NormKind::cohere;
  }
  d.rotary = RotaryKind::f32;
  d.norm = NormKind::cohere;
  d.norms = {{NormPlace::before_attention, "input_layernorm"}};
  d.parallel = true;
  d.logits = LogitMap::scale;
  return build_decoder(d, options);
}

}  // namespace shardplan
