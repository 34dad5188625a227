// Granite 3 with experts (models/granitemoe): Granite whose layers are all sparse.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_granitemoe(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(
      config,
      {.hidden = 4096, .ffn = 11008, .layers = 32, .heads = 32, .vocab = 32000, .positions = 2048});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.embedding_scale = EmbeddingScale::in_model;
  d.scales_residuals = true;
  d.logits = LogitMap::scale;
  d.mlp_after_norms = true;
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = config.count({"num_local_experts"}, 8),
                   .ffn = d.ffn,
                   .score = RouterScore::softmax_of_chosen,
                   .block = "block_sparse_moe",
                   .router = "router"};
  s.top_k = experts_per_token(config, "num_experts_per_tok", 2, s.experts);
  make_sparse_from(d, s, 0);
  note_router_loss(d.assumed, config);
  return build_decoder(d, options);
}

}  // namespace shardplan
