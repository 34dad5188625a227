// The text model of Gemma 3 (models/gemma3, model_type "gemma3_text"): Gemma 2 with norms over the
// heads of q and k; its attention never caps the scores. Local and global layers rotate by tables
// of their own.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_gemma3_text(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 2304,
                                               .ffn = 9216,
                                               .layers = 26,
                                               .heads = 8,
                                               .kv_heads = 4,
                                               .head_dim = 256,
                                               .vocab = 262208,
                                               .positions = 131072,
                                               .tied = true,
                                               .activation_key = "hidden_activation",
                                               .activation = "gelu_pytorch_tanh"});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.norm = NormKind::gemma;
  d.norms = {{NormPlace::before_attention, "input_layernorm"},
             {NormPlace::after_attention, "post_attention_layernorm"},
             {NormPlace::before_mlp, "pre_feedforward_layernorm"},
             {NormPlace::after_mlp, "post_feedforward_layernorm"}};
  d.query_key_norm = QueryKeyNorm::each_head;
  d.query_key_kind = NormKind::gemma;
  d.embedding_scale = EmbeddingScale::in_module;
  if (config.number("final_logit_softcapping", 0) > 0) d.logits = LogitMap::softcap;
  d.window = config.nullable_count("sliding_window", 4096).value_or(0);
  const std::int64_t pattern = config.count({"sliding_window_pattern"}, 6);
  d.sliding =
      sliding_layers(config, d.layers, [&](std::int64_t i) { return (i + 1) % pattern != 0; });
  d.tables_by_window = true;
  return build_decoder(d, options);
}

}  // namespace shardplan
