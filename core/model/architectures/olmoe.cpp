// OLMoE (models/olmoe): every layer sparse, norms over all of q and k.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_olmoe(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(
      config,
      {.hidden = 2048, .ffn = 2048, .layers = 16, .heads = 16, .vocab = 50304, .positions = 4096});
  if (config.number("clip_qkv", 0) > 0)
    config.fail("clip_qkv", "clipped projections are not supported", "null");
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::whole;
  d.head_norms_at = HeadNormsAt::projection;
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = config.count({"num_experts", "num_local_experts"}, 64),
                   .ffn = d.ffn,
                   .normalize = config.flag("norm_topk_prob", false)};
  s.top_k = experts_per_token(config, "num_experts_per_tok", 8, s.experts);
  make_sparse_from(d, s, 0);
  note_router_loss(d.assumed, config);
  return build_decoder(d, options);
}

}  // namespace shardplan
