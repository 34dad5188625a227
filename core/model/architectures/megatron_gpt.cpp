// Megatron Core's GPTModel, as its arguments describe it (Megatron-LM d98e8a64dd,
// models/gpt/gpt_layer_specs.py): any norm, activation and positions together. Networks of
// transformers have types of their own.
#include <fmt/format.h>

#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {
namespace {

NormKind read_norm(const ModelConfig& c) {
  const std::string name = c.text("normalization", "LayerNorm");
  if (name == "LayerNorm") return NormKind::layer;
  if (name != "RMSNorm")
    c.fail("normalization", fmt::format("found '{}'", name), "LayerNorm or RMSNorm");
  return NormKind::rms;
}

void read_positions(const ModelConfig& c, DecoderDescription& d) {
  const std::string name = c.text("position_embedding_type", "learned_absolute");
  if (name != "learned_absolute" && name != "rope" && name != "none")
    c.fail("position_embedding_type", fmt::format("found '{}'", name),
           "learned_absolute, rope or none");
  d.learned_positions = name == "learned_absolute";
  if (name == "rope")
    d.rotary_dim = partial_rotary_dim(c, d.head_dim, 1.0);
  else
    d.unturned.assign(static_cast<std::size_t>(d.layers), true);
}

void read_experts(const ModelConfig& c, DecoderDescription& d, bool gated) {
  const std::int64_t count = c.count_or_zero("num_experts", 0);
  if (count == 0) return;
  const SparseMlpShape shape{.hidden = d.hidden,
                             .experts = count,
                             .top_k = experts_per_token(c, "num_experts_per_tok", 2, count),
                             .ffn = c.count({"moe_intermediate_size"}, d.ffn),
                             .shared_ffn = c.count_or_zero("shared_expert_intermediate_size", 0),
                             .gated = gated,
                             .router = "router"};
  make_sparse_from(d, shape, c.count_or_zero("first_k_dense_replace", 0));
}

}  // namespace

Model build_megatron_gpt(const ModelConfig& c, const BuildOptions& options) {
  if (!options.counts_only && options.kernels != KernelSet::megatron)
    c.fail("model_type", "Megatron Core's network is described as Megatron-LM runs it",
           "framework megatron");
  DecoderDescription d = read_decoder(c, {.positions = 4096, .tied = true, .activation = "gelu"});
  const bool gated = c.flag("gated_linear_unit", false);
  d.norm = read_norm(c);
  d.mlp = gated ? MlpKind::gated : MlpKind::plain;
  d.output_bias = d.mlp_bias = c.flag("add_bias_linear", true);
  d.qkv_bias = d.output_bias || c.flag("add_qkv_bias", false);
  if (c.flag("qk_layernorm", false)) {
    d.query_key_norm = QueryKeyNorm::each_head;
    d.query_key_kind = d.norm;
    d.query_key_norm_bias = d.norm == NormKind::layer;
  }
  d.attention_residual_dropout = d.mlp_residual_dropout = d.embedding_dropout =
      c.number("hidden_dropout", 0.0);
  read_positions(c, d);
  read_experts(c, d, gated);
  return build_decoder(d, options);
}

}  // namespace shardplan
