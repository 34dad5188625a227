// MiniMax M2 (models/minimax_m2): every layer sparse, norms over all of q and k.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_minimax_m2(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 3072,
                                               .ffn = 1536,
                                               .layers = 62,
                                               .heads = 48,
                                               .kv_heads = 8,
                                               .head_dim = 128,
                                               .vocab = 200064,
                                               .positions = 196608});
  d.query_key_norm = QueryKeyNorm::whole;
  d.head_norms_at = HeadNormsAt::projection;
  d.rotary = RotaryKind::sliced;
  // The class reads a factor; "rotary_dim" of the published files is for other programs.
  d.rotary_dim = partial_rotary_dim(config, d.head_dim, 1.0);
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = config.count({"num_local_experts", "num_experts"}, 256),
                   .ffn = d.ffn,
                   .score = RouterScore::sigmoid,
                   .normalize = true};
  s.top_k = experts_per_token(config, "num_experts_per_tok", 8, s.experts);
  make_sparse_from(d, s, 0);
  note_router_loss(d.assumed, config);
  return build_decoder(d, options);
}

}  // namespace shardplan
