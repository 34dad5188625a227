// Apertus (models/apertus): Qwen 3's attention and a plain MLP whose activation trains two numbers.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"
#include "model/layers/convolution.h"

namespace shardplan {

Model build_apertus(const ModelConfig& config, const BuildOptions& options) {
  const bool learned = config.text("hidden_act", "xielu") == "xielu";
  if (learned) require_training(config, options, "activations that train");
  const ModelConfig known = learned ? config.with("hidden_act", std::string("silu")) : config;
  DecoderDescription d = read_decoder(known, {.hidden = 4096,
                                              .ffn = 14336,
                                              .layers = 32,
                                              .heads = 32,
                                              .vocab = 131072,
                                              .positions = 65536});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::each_head;
  d.mlp = MlpKind::plain;
  d.up_name = "up_proj";
  d.down_name = "down_proj";
  d.learned_activation = learned;
  if (learned)
    d.assumed.emplace_back(
        "xIELU in PyTorch's operations: the package xielu's kernel is not described");
  d.norms = {{NormPlace::before_attention, "attention_layernorm"},
             {NormPlace::before_mlp, "feedforward_layernorm"}};
  return build_decoder(d, options);
}

}  // namespace shardplan
