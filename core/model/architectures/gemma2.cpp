// Gemma 2 (models/gemma2): four norms a layer and soft caps; the fused attention ignores the cap of
// the scores, the eager one applies it.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_gemma2(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 2304,
                                               .ffn = 9216,
                                               .layers = 26,
                                               .heads = 8,
                                               .kv_heads = 4,
                                               .head_dim = 256,
                                               .vocab = 256000,
                                               .positions = 8192,
                                               .tied = true,
                                               .activation_key = "hidden_activation",
                                               .activation = "gelu_pytorch_tanh"});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.norm = NormKind::gemma;
  d.norms = {{NormPlace::before_attention, "input_layernorm"},
             {NormPlace::after_attention, "post_attention_layernorm"},
             {NormPlace::before_mlp, "pre_feedforward_layernorm"},
             {NormPlace::after_mlp, "post_feedforward_layernorm"}};
  d.embedding_scale = EmbeddingScale::in_module;
  // An explicit null means no cap.
  const auto capped = [&](const char* key) {
    return !config.has(key) || config.number(key, 0) > 0;
  };
  d.score_softcap = capped("attn_logit_softcapping");
  if (capped("final_logit_softcapping")) d.logits = LogitMap::softcap;
  d.window = config.nullable_count("sliding_window", 4096).value_or(0);
  d.sliding = sliding_layers(config, d.layers, [](std::int64_t i) { return i % 2 == 0; });
  return build_decoder(d, options);
}

}  // namespace shardplan
