// Gemma 1 (models/gemma): a scaled embedding, norms that multiply by 1 + weight in fp32, wide
// heads.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_gemma(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 3072,
                                               .ffn = 24576,
                                               .layers = 28,
                                               .heads = 16,
                                               .kv_heads = 16,
                                               .head_dim = 256,
                                               .vocab = 256000,
                                               .positions = 8192,
                                               .tied = true,
                                               .activation = "gelu_pytorch_tanh"});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.norm = NormKind::gemma;
  d.embedding_scale = EmbeddingScale::in_module;
  return build_decoder(d, options);
}

}  // namespace shardplan
