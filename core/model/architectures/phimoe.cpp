// Phi 3.5-MoE (models/phimoe): LayerNorms, and a router that draws two experts.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"
#include "model/layers/convolution.h"

namespace shardplan {

Model build_phimoe(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_decoder(c, {.hidden = 4096,
                                          .ffn = 6400,
                                          .layers = 32,
                                          .heads = 32,
                                          .kv_heads = 8,
                                          .vocab = 32064,
                                          .positions = 131072});
  require_training(c, options, "routers that draw experts at random");
  d.qkv_bias = d.output_bias = c.flag("attention_bias", false);
  d.head_bias = c.flag("lm_head_bias", false);
  d.norm = NormKind::layer;
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = c.count({"num_local_experts"}, 16),
                   .ffn = d.ffn,
                   .score = RouterScore::sparse_mixer,
                   .jitters = c.number("input_jitter_noise", 0.0) > 0,
                   .router = "router",
                   .router_is = RouterIs::linear};
  s.top_k = experts_per_token(c, "num_experts_per_tok", 2, s.experts);
  if (s.top_k != 2 && !options.counts_only)
    c.fail("num_experts_per_tok", "the class draws two experts whatever the file says", "2");
  make_sparse_from(d, s, 0);
  note_router_loss(d.assumed, c);
  return build_decoder(d, options);
}

}  // namespace shardplan
