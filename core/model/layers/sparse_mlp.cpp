#include "model/layers/sparse_mlp.h"

#include <array>
#include <string>

namespace shardplan {
namespace {

/// x *= noise, in place: autograd keeps the noise.
ValueId jittered(Graph& g, ValueId x) {
  Op noise{OpKind::copy, {x, kNone, kNone}};
  noise.detached = true;
  return g.map(OpKind::mul, x, g.op(noise, g.value(x).extent));
}

/// modeling_phimoe.py, sparsemixer: an expert is drawn from the probabilities of those that are
/// near to the best one, then a second one from the rest.
ValueId mixed_weights(Graph& g, ValueId logits) {
  const Extent one{1, Scale::tokens};
  std::array<ValueId, 2> weights{};
  for (ValueId& weight : weights) {
    // The second time a copy of the scores without the first expert's.
    const ValueId scores = &weight == &weights[0] ? logits : g.map(OpKind::scalar, logits);
    Op mask{OpKind::masked, {scores, kNone, kNone}};
    mask.side = g.value(logits).extent;
    const ValueId probabilities = g.map(OpKind::softmax, g.op(mask, g.value(logits).extent));
    Op pick{OpKind::gather_columns, {probabilities, kNone, kNone}};
    pick.side = one;
    // PhimoeMultiplier keeps what was picked and where from.
    weight = g.op({OpKind::mul, {g.op(pick, one), probabilities, kNone}}, one);
  }
  return g.op({OpKind::cat, {weights[0], weights[1], kNone}}, {2, Scale::tokens});
}

Routing route(Graph& g, const SparseMlp& m, ValueId x) {
  const SparseMlpShape& s = m.shape;
  Routing r;
  switch (s.score) {
    case RouterScore::softmax:
      r = softmax_routing(g, m.router, s.top_k, s.normalize, x);
      r.weights = g.map(OpKind::to_like, r.weights, r.logits);
      return r;
    case RouterScore::softmax_of_chosen:
      r.logits = g.map(OpKind::to_f32, apply(g, m.router, x));
      r.weights = g.map(OpKind::softmax, choose(g, r.logits, s.top_k));
      r.weights = g.map(OpKind::to_like, r.weights, x);
      return r;
    case RouterScore::sigmoid:
      r.logits = apply(g, m.router, x);
      r.weights = g.map(OpKind::sigmoid, g.map(OpKind::to_f32, r.logits));
      break;
    case RouterScore::sigmoid_as_made:
      r.logits = apply(g, m.router, x);
      r.weights = g.map(OpKind::sigmoid, r.logits);
      break;
    case RouterScore::sparse_mixer:
      r.logits = apply(g, m.router, s.jitters ? jittered(g, x) : x);
      r.weights = mixed_weights(g, r.logits);
      return r;
    case RouterScore::softmax_f32:
      r.logits = f32_logits(g, m.router, x);
      r.weights = choose(g, g.map(OpKind::softmax_f32, r.logits), s.top_k);
      r.weights = g.map(OpKind::to_like, normalize_rows_clamped(g, r.weights), x);
      return r;
    case RouterScore::sigmoid_f32:
      r.logits = f32_logits(g, m.router, x);
      r.weights = g.map(OpKind::sigmoid, r.logits);
      break;
  }
  r.weights = choose(g, r.weights, s.top_k);
  if (s.normalize) r.weights = normalize_rows(g, r.weights);
  if (s.scales) r.weights = g.map(OpKind::scalar, r.weights);
  return r;
}

}  // namespace

SparseMlp sparse_mlp(ModelBuilder& m, const SparseMlpShape& s) {
  const std::string block(s.block);
  SparseMlp mlp;
  mlp.shape = s;
  const auto add_router = [&] {
    mlp.router = router(m, block + "." + std::string(s.router), s.hidden, s.experts, s.router_bias,
                        s.router_is);
    if (!s.correction.empty())
      m.freeze(m.tensor(block + "." + std::string(s.router) + "." + std::string(s.correction),
                        {1, s.experts}, ParameterKind::other));
  };
  if (!s.experts_first) add_router();
  const std::int64_t width = s.expert_width > 0 ? s.expert_width : s.hidden;
  mlp.experts = s.gated ? experts(m, block + ".experts", s.experts, width, s.ffn)
                        : plain_experts(m, block + ".experts", s.experts, width, s.ffn);
  if (s.experts_first) add_router();
  if (s.shared_ffn == 0) return mlp;
  const std::string shared = block + "." + std::string(s.shared);
  if (s.gated)
    mlp.shared = gated_mlp(m, shared, s.hidden, s.shared_ffn, s.shared_bias);
  else
    mlp.plain_shared = plain_mlp(m, shared, s.hidden, s.shared_ffn, s.shared_bias);
  return mlp;
}

ValueId apply(Graph& g, const SparseMlp& m, Activation activation, ValueId given,
              const LatentExperts* latent) {
  const SparseMlpShape& s = m.shape;
  const ValueId x = s.jitters ? jittered(g, given) : given;
  const auto run_shared = [&] {
    return m.shared ? gated_mlp(g, *m.shared, activation, x)
                    : plain_mlp(g, *m.plain_shared, activation, x);
  };
  const bool first = s.shared_ffn > 0 && s.shared_runs_first;
  const ValueId before = first ? run_shared() : kNone;
  const Routing routing = route(g, m, x);
  const ValueId taken = latent == nullptr ? x : apply(g, latent->into, x);
  ValueId chosen = apply(g, m.experts, ExpertGate::activation, activation, taken, routing.weights);
  if (latent != nullptr) chosen = apply(g, latent->out, chosen);
  if (s.shared_ffn == 0) {
    g.hold(routing.logits, chosen);
    return chosen;
  }
  const ValueId sum = g.map(OpKind::add, chosen, first ? before : run_shared());
  g.hold(routing.logits, sum);
  return sum;
}

}  // namespace shardplan
