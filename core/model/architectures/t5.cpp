// T5, T5 1.1 and Flan-T5 (models/t5) and mT5 (models/mt5), ForConditionalGeneration.
//
// transformers 5.17 always ties the head to the shared table; tie_word_embeddings false, as the
// configurations of T5 1.1 and Flan-T5 say, only turns off the scaling before the head. Attention
// runs sdpa unless told otherwise, with the relative position bias as its additive mask. No fused
// kernel takes it: flash attention has no masks, and the memory-efficient kernel wants the mask's
// last dimension to be contiguous, which that of a looked-up bias, permuted from [s, s, heads], is
// not (sdp_utils_cpp.h, check_last_dim_stride_equals_1_dense). So self-attention falls back to
// the operations one by one. The zeros of cross attention are contiguous.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/heads.h"
#include "model/layers/mlp.h"

namespace shardplan {
namespace {

struct T5 {
  std::int64_t hidden, head_dim, ffn, heads, buckets, vocab;
  bool gated, scaled_head;
  double dropout;
  Activation activation;
  AttentionKind kind;
};

struct Attention {
  LinearModule q, k, v, o;
  NormModule norm;
};

struct Block {
  Attention self, cross;
  LinearModule wi, wi_1, wo;
  NormModule norm;
  EmbeddingModule bias;
};

/// What the two classes differ in.
struct T5Defaults {
  std::int64_t ffn = 2048, layers = 6, heads = 8, vocab = 32128;
  std::string_view feed_forward = "relu";
  bool may_scale = true;  ///< before the head, unless tie_word_embeddings is false
};

T5 read(const ModelConfig& c, const BuildOptions& options, const T5Defaults& d) {
  T5 t{};
  t.hidden = c.count({"d_model", "hidden_size"}, 512);
  t.head_dim = c.count({"d_kv"}, 64);
  t.ffn = c.count({"d_ff"}, d.ffn);
  t.heads = c.count({"num_heads", "num_attention_heads"}, d.heads);
  t.buckets = c.count({"relative_attention_num_buckets"}, 32);
  t.vocab = c.count({"vocab_size"}, d.vocab);
  t.dropout = c.number("dropout_rate", 0.1);
  t.scaled_head = d.may_scale && c.flag("tie_word_embeddings", true);
  t.kind = options.attention;
  const std::string feed = c.text("feed_forward_proj", d.feed_forward);
  t.gated = feed.starts_with("gated-");
  const std::string name = t.gated ? feed.substr(6) : feed;
  // "gated-gelu" means the tanh approximation, written out.
  const ModelConfig activation(
      c.file(),
      {{"feed_forward_proj", ConfigScalar(t.gated && name == "gelu" ? "gelu_new" : name)}});
  t.activation = read_activation(activation, "feed_forward_proj", "relu");
  return t;
}

Attention declare_attention(ModelBuilder& m, const T5& t, const std::string& name) {
  const std::int64_t inner = t.heads * t.head_dim;
  Attention a;
  a.q = m.linear(name + ".q", t.hidden, inner);
  a.k = m.linear(name + ".k", t.hidden, inner);
  a.v = m.linear(name + ".v", t.hidden, inner);
  a.o = m.linear(name + ".o", inner, t.hidden);
  return a;
}

Block declare_block(ModelBuilder& m, const T5& t, bool decoder, bool first) {
  Block b;
  b.self = declare_attention(m, t, "layer.0.SelfAttention");
  if (first)
    b.bias = m.embedding("layer.0.SelfAttention.relative_attention_bias", t.buckets, t.heads);
  b.self.norm = m.rms_norm("layer.0.layer_norm", t.hidden);
  if (decoder) {
    b.cross = declare_attention(m, t, "layer.1.EncDecAttention");
    b.cross.norm = m.rms_norm("layer.1.layer_norm", t.hidden);
  }
  const std::string feed = decoder ? "layer.2" : "layer.1";
  b.wi =
      m.linear(feed + (t.gated ? ".DenseReluDense.wi_0" : ".DenseReluDense.wi"), t.hidden, t.ffn);
  if (t.gated) b.wi_1 = m.linear(feed + ".DenseReluDense.wi_1", t.hidden, t.ffn);
  b.wo = m.linear(feed + ".DenseReluDense.wo", t.ffn, t.hidden);
  b.norm = m.rms_norm(feed + ".layer_norm", t.hidden);
  return b;
}

struct Stack {
  Block first, rest;
  std::int64_t layers = 0;
  NormModule norm;
};

Stack declare_stack(ModelBuilder& m, const T5& t, const std::string& side, std::int64_t layers) {
  const bool decoder = side == "decoder";
  Stack s;
  s.layers = layers;
  m.begin_repeat(side + ".block", 1);
  s.first = declare_block(m, t, decoder, true);
  if (layers > 1) {
    m.begin_repeat(side + ".block", layers - 1, 1);
    s.rest = declare_block(m, t, decoder, false);
  }
  m.end_repeat();
  s.norm = m.rms_norm(side + ".final_layer_norm", t.hidden);
  return s;
}

ValueId parameter(Graph& g, ModuleId module, ParameterId id, std::int64_t size) {
  Op op{OpKind::parameter};
  op.module = module;
  op.weight = id;
  return g.op(op, {size, Scale::one});
}

/// T5LayerNorm: the variance from an fp32 copy, but the product from x itself.
ValueId norm(Graph& g, const NormModule& m, ValueId x) {
  const Extent row{1, g.value(x).extent.scale};
  const ValueId squares = g.map(OpKind::power, g.map(OpKind::to_f32, x));
  const ValueId variance = g.op({OpKind::mean, {squares, kNone, kNone}}, row);
  const ValueId inverse = g.map(OpKind::rsqrt, g.map(OpKind::scalar, variance));
  const ValueId normal = g.map(OpKind::mul, x, inverse);
  const ValueId weight = parameter(g, m.module, m.weight, m.width);
  const ValueId narrow = g.map(OpKind::to_like, normal, weight);
  const ValueId out = g.map(OpKind::mul, narrow, weight);
  g.hold(variance, out);
  return out;
}

/// The bias or mask that a stack's attention adds to its scores.
struct Bias {
  std::int32_t shared = kNone;
  Scale scale = Scale::square;
  bool causal = false;
  bool learned = true;  ///< looked up as [s, s, heads] and permuted
};

ValueId attend(Graph& g, const T5& t, const Attention& a, const Bias& bias, ValueId x,
               ValueId source) {
  const ValueId q = apply(g, a.q, x);
  const ValueId k = apply(g, a.k, source);
  const ValueId v = apply(g, a.v, source);
  const AttentionShape shape{.heads = t.heads,
                             .kv_heads = t.heads,
                             .head_dim = t.head_dim,
                             .queries = g.value(x).extent.scale,
                             .keys = g.value(source).extent.scale,
                             .dropout = t.dropout,
                             .softmax_f32 = false};
  ValueId added = g.shared_input(bias.shared, {t.heads, bias.scale});
  ValueId mixed = kNone;
  if (t.kind == AttentionKind::eager) {
    mixed = attention(g, t.kind, shape, q, k, v, added);
  } else if (bias.learned) {
    // Every decoder layer masks the future in a copy of the bias.
    if (bias.causal) added = g.map(OpKind::scalar, added);
    mixed = math_attention(g, shape, q, k, v, added);
  } else {
    mixed = masked_attention(g, shape, q, k, v, added);
  }
  return dropout(g, apply(g, a.o, mixed), t.dropout);
}

ValueId feed_forward(Graph& g, const T5& t, const Block& b, ValueId x) {
  const ValueId normal = norm(g, b.norm, x);
  ValueId inner = activate(g, t.activation, apply(g, b.wi, normal));
  if (t.gated) inner = g.map(OpKind::mul, inner, apply(g, b.wi_1, normal));
  inner = dropout(g, inner, t.dropout);
  // Under autocast the class casts to the weight's fp32 before the product.
  const ValueId like = parameter(g, b.wo.module, b.wo.weight, t.ffn * t.hidden);
  const ValueId out = apply(g, b.wo, g.map(OpKind::to_like, inner, like));
  return g.map(OpKind::add, x, dropout(g, out, t.dropout));
}

struct Biases {
  Bias self, cross;
  std::int32_t encoded = kNone;  ///< the encoder's output, decoder only
};

void block(Graph& g, const T5& t, const Block& b, const Biases& biases, Scale scale) {
  ValueId x = g.chained_input({t.hidden, scale});
  const ValueId in = norm(g, b.self.norm, x);
  x = g.map(OpKind::add, x, attend(g, t, b.self, biases.self, in, in));
  if (biases.encoded != kNone) {
    const ValueId encoded = g.shared_input(biases.encoded, {t.hidden, Scale::tokens});
    const ValueId query = norm(g, b.cross.norm, x);
    x = g.map(OpKind::add, x, attend(g, t, b.cross, biases.cross, query, encoded));
  }
  g.set_output(feed_forward(g, t, b, x));
}

/// Position bias, embedding and blocks of one stack. Block 0 makes the bias, all blocks use it:
/// here it has a segment of its own, whose gradient gathers from all of them.
void stack(ModelBuilder& m, const T5& t, const Stack& s, const EmbeddingModule& tokens,
           Biases biases, const std::string& side, Scale scale) {
  Graph& p = m.begin_segment(side + " position bias");
  Op lookup{OpKind::embedding};
  lookup.module = s.first.bias.module;
  lookup.weight = s.first.bias.weight;
  lookup.side = {1, biases.self.scale};  // the bucket of every pair of positions
  p.set_output(p.op(lookup, {t.heads, biases.self.scale}));
  // A name of the stack's forward, which returns without it.
  biases.self.shared = m.share_output(side + " position bias", {t.heads, biases.self.scale}, true);
  // Cross attention has no relative positions: zeros, made once.
  if (biases.encoded != kNone)
    biases.cross.shared = m.share("cross position bias", {t.heads, biases.cross.scale});
  Graph& e = m.begin_segment(side + " embedding");
  const ValueId looked_up = apply(e, tokens, scale);
  const ValueId start = dropout(e, looked_up, t.dropout);
  e.set_output(start);
  block(m.begin_segment(side + " first block", 1, true), t, s.first, biases, scale);
  if (s.layers > 1)
    block(m.begin_segment(side + " blocks", s.layers - 1, true), t, s.rest, biases, scale);
}

Model build_t5_like(const ModelConfig& c, const BuildOptions& options, const T5Defaults& defaults) {
  if (options.kernels == KernelSet::megatron)
    c.fail("model_type",
           "an encoder and a decoder of this kind are described as transformers runs them",
           "framework single, ddp, fsdp1, fsdp2 or deepspeed");
  const T5 t = read(c, options, defaults);
  const std::int64_t encoder_layers = c.count({"num_layers", "num_hidden_layers"}, defaults.layers);
  const std::int64_t decoder_layers =
      c.nullable_count("num_decoder_layers", std::nullopt).value_or(encoder_layers);
  ModelBuilder m(options);
  m.facts() = {.hidden = t.hidden,
               .layers = encoder_layers + decoder_layers,
               .vocabulary = t.vocab,
               .attention_heads = t.heads,
               .key_value_heads = t.heads,
               .encoder_decoder = true,
               .supports_flash_attn = false};
  if (!c.flag("tie_word_embeddings", true))
    m.facts().assumed.push_back(
        "tied head: transformers 5.17 ties it although tie_word_embeddings is false");
  const auto tokens = m.embedding("shared", t.vocab, t.hidden);
  const Stack encoder = declare_stack(m, t, "encoder", encoder_layers);
  const Stack decoder = declare_stack(m, t, "decoder", decoder_layers);
  const auto head = m.tied_linear("lm_head", tokens);

  stack(m, t, encoder, tokens, {.self = {.scale = Scale::square}}, "encoder", Scale::tokens);
  Graph& n = m.begin_segment("encoder norm");
  n.set_output(
      dropout(n, norm(n, encoder.norm, n.chained_input({t.hidden, Scale::tokens})), t.dropout));
  const std::int32_t encoded = m.share_output("encoder output", {t.hidden, Scale::tokens});

  const Biases biases{.self = {.scale = Scale::target_square, .causal = true},
                      .cross = {.scale = Scale::cross_square, .learned = false},
                      .encoded = encoded};
  stack(m, t, decoder, tokens, biases, "decoder", Scale::target_tokens);
  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({t.hidden, Scale::target_tokens});
  const ValueId normal = dropout(h, norm(h, decoder.norm, last), t.dropout);
  const ValueId scaled = t.scaled_head ? h.map(OpKind::scalar, normal) : normal;
  h.begin_logits();
  const ValueId loss = cross_entropy(h, apply(h, head, scaled));
  h.hold(normal, loss);  // the decoder's output object has it
  h.hold(scaled, loss);
  h.set_output(loss);
  return m.build();
}

}  // namespace

Model build_t5(const ModelConfig& c, const BuildOptions& options) {
  return build_t5_like(c, options, {});
}

Model build_mt5(const ModelConfig& c, const BuildOptions& options) {
  return build_t5_like(c, options,
                       {.ffn = 1024,
                        .layers = 8,
                        .heads = 6,
                        .vocab = 250112,
                        .feed_forward = "gated-gelu",
                        .may_scale = false});
}

}  // namespace shardplan
