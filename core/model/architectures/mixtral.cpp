// Mixtral (models/mixtral): every layer is sparse.
#include "model/architectures/architectures.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/experts.h"
#include "model/layers/rotary_attention.h"

namespace shardplan {
namespace {

struct MixtralLayer {
  RotaryAttention attention;
  LinearModule gate;
  Experts experts;
  NormModule norm1, norm2;
};

ValueId mixtral_layer(Graph& g, const MixtralLayer& l, AttentionKind kind, Activation activation,
                      std::int64_t top_k, const Positions& at, ValueId x) {
  const ValueId mixed = apply(g, l.attention, kind, at, rms_norm(g, l.norm1, x));
  const ValueId middle = g.map(OpKind::add, x, mixed);
  const ValueId normal = rms_norm(g, l.norm2, middle);
  // The router's weights stay in fp32 here: the weighted rows are fp32 too.
  const Routing routing = softmax_routing(g, l.gate, top_k, true, normal);
  const ValueId delta =
      apply(g, l.experts, ExpertGate::activation, activation, normal, routing.weights);
  g.hold(routing.logits, delta);
  g.hold(normal, delta);
  return g.map(OpKind::add, middle, delta);
}

}  // namespace

Model build_mixtral(const ModelConfig& c, const BuildOptions& options) {
  const std::int64_t hidden = c.count({"hidden_size"}, 4096);
  const std::int64_t ffn = c.count({"intermediate_size"}, 14336);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 32);
  const std::int64_t heads = c.count({"num_attention_heads"}, 32);
  const std::int64_t kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(heads);
  const std::int64_t experts_count = c.count({"num_local_experts", "num_experts"}, 8);
  const std::int64_t top_k = c.count({"num_experts_per_tok"}, 2);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", hidden, "num_attention_heads", heads);
  c.require_divisible("num_attention_heads", heads, "num_key_value_heads", kv_heads);
  if (top_k > experts_count)
    c.fail("num_experts_per_tok", "more experts per token than experts",
           "at most num_local_experts");
  const Activation activation = read_activation(c, "hidden_act", "silu");
  const AttentionShape shape{.heads = heads,
                             .kv_heads = kv_heads,
                             .head_dim = head_dim.value_or(hidden / heads),
                             .dropout = c.number("attention_dropout", 0.0)};

  ModelBuilder m(options);
  const DecoderStack stack{.hidden = hidden,
                           .vocabulary = c.count({"vocab_size"}, 32000),
                           .tied = c.flag("tie_word_embeddings", false),
                           .rotary_dim = shape.head_dim,
                           .runs = layer_runs(layers, [](std::int64_t) { return true; }),
                           .attention = options.attention};
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = stack.vocabulary,
               .max_positions = c.count_or_zero("max_position_embeddings", 131072),
               .attention_heads = heads,
               .key_value_heads = kv_heads};
  note_router_loss(m, c);

  const auto declare = [&](ModelBuilder& b, bool) {
    MixtralLayer l;
    l.attention = rotary_attention(b, hidden, shape, false, false);
    l.gate = router(b, "mlp.gate", hidden, experts_count);
    l.experts = experts(b, "mlp.experts", experts_count, hidden, ffn);
    l.norm1 = b.rms_norm("input_layernorm", hidden);
    l.norm2 = b.rms_norm("post_attention_layernorm", hidden);
    return l;
  };
  const auto forward = [&](Graph& g, const MixtralLayer& l, bool, const Positions& at, ValueId x) {
    return mixtral_layer(g, l, options.attention, activation, top_k, at, x);
  };
  return build_decoder(m, stack, declare, forward);
}

}  // namespace shardplan
