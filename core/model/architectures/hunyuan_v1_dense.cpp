// Hunyuan dense (models/hunyuan_v1_dense): Llama with norms of queries and keys after their
// rotation.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

DecoderDescription read_hunyuan(const ModelConfig& config) {
  if (!config.optional_count({"head_dim"}))
    config.fail("head_dim", "missing: the class has no default", "the width of a head");
  DecoderDescription d = read_decoder(config, {.hidden = 4096,
                                               .ffn = 11008,
                                               .layers = 32,
                                               .heads = 32,
                                               .vocab = 290943,
                                               .positions = 2048});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::each_head;
  d.query_norm = "query_layernorm";
  d.key_norm = "key_layernorm";
  d.head_norms_at = HeadNormsAt::turned;
  return d;
}

Model build_hunyuan_v1_dense(const ModelConfig& config, const BuildOptions& options) {
  return build_decoder(read_hunyuan(config), options);
}

}  // namespace shardplan
