// OLMo 1 (models/olmo): norms that learn nothing, in fp32, and projections that may be clipped.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_olmo(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(
      config,
      {.hidden = 4096, .ffn = 11008, .layers = 32, .heads = 32, .vocab = 50304, .positions = 2048});
  if (options.kernels == KernelSet::megatron)
    config.fail("model_type", "norms without parameters are described as transformers runs them",
                "framework single, ddp, fsdp1, fsdp2 or deepspeed");
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.clips_projections = config.number("clip_qkv", 0) > 0;
  d.rotary = RotaryKind::f32_tables;
  d.norm = NormKind::layer_bare;
  return build_decoder(d, options);
}

}  // namespace shardplan
