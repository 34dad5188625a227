// Granite 3 (models/granite): Llama with numbers that multiply embeddings, residuals
// and logits.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

DecoderDescription read_granite(const ModelConfig& config) {
  DecoderDescription d = read_decoder(
      config,
      {.hidden = 4096, .ffn = 11008, .layers = 32, .heads = 32, .vocab = 32000, .positions = 2048});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.mlp_bias = config.flag("mlp_bias", false);
  d.embedding_scale = EmbeddingScale::in_model;
  d.scales_residuals = true;
  d.logits = LogitMap::scale;
  return d;
}

Model build_granite(const ModelConfig& config, const BuildOptions& options) {
  return build_decoder(read_granite(config), options);
}

}  // namespace shardplan
