#include "model/layers/experts.h"

#include <fmt/format.h>

#include <string>

#include "model/layers/adapters.h"
#include "model/layers/deepspeed_moe.h"

namespace shardplan {
namespace {

ValueId parameter(Graph& g, ModuleId module, ParameterId id, Extent extent) {
  Op op{OpKind::parameter};
  op.module = module;
  op.weight = id;
  return g.op(op, extent);
}

/// Rows picked by an int64 index of `k` entries a token.
ValueId gather(Graph& g, ValueId x, std::int64_t k, std::int64_t per) {
  Op op{OpKind::gather_rows, {x, kNone, kNone}};
  op.side = {k, Scale::tokens};
  return g.op(op, {per, Scale::tokens});
}

struct GroupedWeight {
  ParameterId weight, bias;
  std::int64_t in, out;
  const std::optional<LoraModules>& lora;
};

/// The product with a weight that adapters were added to: autograd keeps that weight, and its
/// gradient is as large.
ValueId adapted_product(Graph& g, const Experts& e, const GroupedWeight& w, Extent out, ValueId x,
                        std::int64_t work, std::vector<ValueId>& locals) {
  const std::int64_t count = checked_mul(checked_mul(e.count, w.in), w.out);
  locals.push_back(adapted_weight(g, *w.lora, e.module, w.weight, count));
  Op op{OpKind::matmul, {g.map(OpKind::to_like, x, locals.back()), locals.back(), kNone}};
  op.work = {work, Scale::tokens};
  op.autocast = false;
  op.grouped = true;
  return g.op(op, out);
}

/// The product with the experts' own weights, and B(A(dropout(x)))·scaling of a pair for each
/// expert added to it (mcore-bridge 1.6, tuners/lora.py).
ValueId product_of_pairs(Graph& g, const Experts& e, const GroupedWeight& w, std::int64_t rows,
                         ValueId x) {
  const auto product = [&](ModuleId module, ParameterId weight, ValueId from, std::int64_t in,
                           std::int64_t out) {
    Op op{OpKind::grouped_linear, {from, kNone, kNone}};
    op.module = module;
    op.weight = weight;
    op.work = {checked_mul(rows * in, out), Scale::tokens};
    return g.op(op, {rows * out, Scale::tokens});
  };
  const ValueId y = product(e.module, w.weight, x, w.in, w.out);
  if (!w.lora) return y;
  const ValueId a =
      product(w.lora->a_module, w.lora->a, dropout(g, x, w.lora->dropout), w.in, w.lora->rank);
  const ValueId b = product(w.lora->b_module, w.lora->b, a, w.lora->rank, w.out);
  const ValueId sum = g.map(OpKind::add, y, g.map(OpKind::scalar, b));
  g.hold(x, sum);
  return sum;
}

/// One grouped product over `rows` pairs a token and the zeroing of rows beyond the last expert,
/// which makes a second tensor.
ValueId grouped(Graph& g, const Experts& e, const GroupedWeight& w, std::int64_t rows, ValueId x,
                std::vector<ValueId>& locals) {
  ValueId bias = kNone;
  if (w.bias != kNone) {
    const ValueId table = parameter(g, e.module, w.bias, {e.count * w.out, Scale::one});
    bias = gather(g, table, rows, rows * w.out);
  }
  const Extent out{rows * w.out, Scale::tokens};
  const std::int64_t work = checked_mul(rows * w.in, w.out);
  if (w.lora) {
    ValueId sum = adapted_product(g, e, w, out, x, work, locals);
    if (bias != kNone) sum = g.map(OpKind::add, sum, bias);
    return g.map(OpKind::scalar, sum);
  }
  Op op{OpKind::grouped_linear, {x, bias, kNone}};
  op.module = e.module;
  op.weight = w.weight;
  op.work = {work, Scale::tokens};
  const ValueId product = g.op(op, out);
  return g.map(OpKind::scalar, product);
}

/// Megatron's layer (transformer/moe/token_dispatcher.py, experts.py): rows are put in the order of
/// ranks, exchanged, and put in the order of experts; a token's weight goes into its activation, so
/// that nothing of the second product's result is kept. Indices are maps of int32, two entries for
/// each token and expert.
ValueId dispatched(Graph& g, const Experts& e, Activation activation, ValueId x, ValueId weights) {
  const std::int64_t k = per(g, weights);
  const Extent half{k * e.ffn, Scale::tokens};
  const auto reorder = [&](ValueId rows, std::int64_t indices) {
    Op op{OpKind::gather_rows, {rows, kNone, kNone}};
    op.side = {indices, Scale::tokens};
    return g.op(op, {k * e.hidden, Scale::tokens});
  };
  const ValueId by_rank = reorder(x, e.count + 1);
  const ValueId own_weights = gather(g, weights, k, k);
  const auto gated_rows = [&](ValueId rows) {
    const GroupedWeight w{e.gate_up, kNone, e.hidden, 2 * e.ffn, e.gate_up_lora};
    const ValueId both = product_of_pairs(g, e, w, k, rows);
    return g.op({OpKind::gated, {g.view(both, half), g.view(both, half), own_weights}}, half);
  };
  const auto plain_rows = [&](ValueId rows) {  // the product with the weights is not fused
    const GroupedWeight w{e.up, kNone, e.hidden, e.ffn, e.gate_up_lora};
    const ValueId up = product_of_pairs(g, e, w, k, rows);
    return g.map(OpKind::mul, activate(g, activation, up), own_weights);
  };
  const ValueId sorted = reorder(by_rank, k);
  const ValueId inner = e.gate_up != kNone ? gated_rows(sorted) : plain_rows(sorted);
  const GroupedWeight down{e.down, kNone, e.ffn, e.hidden, e.down_lora};
  const ValueId back = reorder(product_of_pairs(g, e, down, k, inner), k);
  return g.op({OpKind::mean, {back, kNone, kNone}}, {e.hidden, Scale::tokens});
}

ValueId clamped_gate(Graph& g, ValueId both, Extent half) {
  const ValueId gate = g.map(OpKind::clamp, g.view(both, half));
  const ValueId up = g.map(OpKind::clamp, g.view(both, half));
  const ValueId glu = g.map(OpKind::mul, gate, g.map(OpKind::sigmoid, g.map(OpKind::scalar, gate)));
  return g.map(OpKind::mul, g.map(OpKind::scalar, up), glu);
}

std::optional<LoraModules> adapters_of(const ModelBuilder& m, ParameterId weight) {
  const LoraModules* lora = weight == kNone ? nullptr : m.lora_of(weight);
  return lora == nullptr ? std::nullopt : std::optional(*lora);
}

Experts with_adapters(const ModelBuilder& m, Experts e) {
  e.gate_up_lora = adapters_of(m, e.gate_up != kNone ? e.gate_up : e.up);
  e.down_lora = adapters_of(m, e.down);
  return e;
}

}  // namespace

Experts experts(ModelBuilder& m, std::string_view name, std::int64_t count, std::int64_t hidden,
                std::int64_t ffn) {
  const std::string prefix(name);
  Experts e{.count = count, .hidden = hidden, .ffn = ffn, .moe = m.options().moe};
  if (e.moe) {
    e.gate = m.tensor(prefix + ".gate_proj", {count, ffn, hidden}, ParameterKind::expert);
    e.up = m.tensor(prefix + ".up_proj", {count, ffn, hidden}, ParameterKind::expert);
  } else {
    e.gate_up = m.tensor(prefix + ".gate_up_proj", {count, 2 * ffn, hidden}, ParameterKind::expert);
  }
  e.down = m.tensor(prefix + ".down_proj", {count, hidden, ffn}, ParameterKind::expert);
  e.module = m.owner(e.down);
  return with_adapters(m, e);
}

Experts plain_experts(ModelBuilder& m, std::string_view name, std::int64_t count,
                      std::int64_t hidden, std::int64_t ffn) {
  const std::string prefix(name);
  Experts e{.count = count, .hidden = hidden, .ffn = ffn};
  e.up = m.tensor(prefix + ".up_proj", {count, ffn, hidden}, ParameterKind::expert);
  e.down = m.tensor(prefix + ".down_proj", {count, hidden, ffn}, ParameterKind::expert);
  e.module = m.owner(e.down);
  return with_adapters(m, e);
}

Experts transposed_experts(ModelBuilder& m, std::string_view name, std::int64_t count,
                           std::int64_t hidden, std::int64_t ffn) {
  const std::string prefix(name);
  Experts e{.count = count, .hidden = hidden, .ffn = ffn};
  e.gate_up = m.tensor(prefix + ".gate_up_proj", {count, hidden, 2 * ffn}, ParameterKind::expert);
  e.gate_up_bias = m.tensor(prefix + ".gate_up_proj_bias", {count, 2 * ffn}, ParameterKind::expert);
  e.down = m.tensor(prefix + ".down_proj", {count, ffn, hidden}, ParameterKind::expert);
  e.down_bias = m.tensor(prefix + ".down_proj_bias", {count, hidden}, ParameterKind::expert);
  e.module = m.owner(e.gate_up);
  return with_adapters(m, e);
}

LinearModule router(ModelBuilder& m, std::string_view name, std::int64_t hidden,
                    std::int64_t experts, bool bias, RouterIs is) {
  if (is == RouterIs::linear) return m.linear(name, hidden, experts, bias);
  const std::string prefix(name);
  LinearModule r;
  r.in = hidden;
  r.out = experts;
  r.weight = m.tensor(prefix + ".weight", {experts, hidden}, ParameterKind::linear);
  m.set_no_linear(r.weight);
  r.lora = adapters_of(m, r.weight);
  r.lora_in_weight = r.lora.has_value();
  if (bias) r.bias = m.tensor(prefix + ".bias", {experts}, ParameterKind::bias);
  r.module = m.owner(r.weight);
  return r;
}

ValueId choose(Graph& g, ValueId scores, std::int64_t top_k) {
  return gather(g, scores, top_k, top_k);
}

ValueId normalize_rows(Graph& g, ValueId weights) {
  const ValueId sum = g.op({OpKind::mean, {weights, kNone, kNone}}, {1, Scale::tokens});
  return g.map(OpKind::mul, weights, sum);
}

ValueId normalize_rows_clamped(Graph& g, ValueId weights) {
  const ValueId sum = g.op({OpKind::mean, {weights, kNone, kNone}}, {1, Scale::tokens});
  return g.map(OpKind::mul, weights, g.map(OpKind::clamp, sum));
}

Routing softmax_routing(Graph& g, const LinearModule& router, std::int64_t top_k, bool normalize,
                        ValueId x) {
  const ValueId logits = g.routes_in_f32() ? f32_logits(g, router, x) : apply(g, router, x);
  const ValueId weights = choose(g, g.map(OpKind::softmax_f32, logits), top_k);
  return {logits, normalize ? normalize_rows(g, weights) : weights};
}

ValueId f32_logits(Graph& g, const LinearModule& router, ValueId x) {
  if (g.fuses()) return apply(g, router, x);  // Megatron's router keeps its input as it is
  const std::int64_t count = checked_mul(router.in, router.out);
  const ValueId weight =
      router.lora_in_weight
          ? adapted_matrix(g, router)
          : parameter(g, router.module, router.weight, {count, Scale::one});
  Op op{OpKind::matmul, {g.map(OpKind::to_f32, x), g.map(OpKind::to_f32, weight), kNone}};
  op.work = {count, Scale::tokens};
  return g.op(op, {router.out, Scale::tokens});
}

void note_router_loss(std::vector<std::string>& assumed, const ModelConfig& config) {
  if (config.flag("output_router_logits", false))
    assumed.push_back(
        "output_router_logits: the load-balancing loss and its tensors are not counted");
}

void note_router_loss(ModelBuilder& m, const ModelConfig& config) {
  note_router_loss(m.facts().assumed, config);
}

std::int64_t experts_per_token(const ModelConfig& config, std::string_view key,
                               std::int64_t fallback, std::int64_t experts) {
  const std::int64_t chosen = config.count({key}, fallback);
  if (chosen > experts)
    config.fail(key, "more experts per token than experts", fmt::format("at most {}", experts));
  return chosen;
}

ValueId apply(Graph& g, const Experts& e, ExpertGate gate, Activation activation, ValueId x,
              ValueId weights) {
  if (g.fuses() && gate == ExpertGate::activation) return dispatched(g, e, activation, x, weights);
  if (e.moe) return deepspeed_moe(g, e, activation, x, weights);
  const std::int64_t k = per(g, weights);
  const Extent half{k * e.ffn, Scale::tokens};
  std::vector<ValueId> locals;
  const ValueId rows = gather(g, x, k, k * e.hidden);
  const ValueId sorted_weights = gather(g, weights, k, k);
  const bool plain = e.gate_up == kNone;
  const GroupedWeight first{plain ? e.up : e.gate_up, e.gate_up_bias, e.hidden,
                            (plain ? 1 : 2) * e.ffn, e.gate_up_lora};
  const ValueId both = grouped(g, e, first, k, rows, locals);
  ValueId inner = kNone;
  if (plain) {
    inner = activate(g, activation, both);
  } else if (gate == ExpertGate::clamped) {
    inner = clamped_gate(g, both, half);
  } else {
    inner = gated(g, activation, g.view(both, half), g.view(both, half));
  }
  g.hold(both, inner);
  const ValueId out =
      grouped(g, e, {e.down, e.down_bias, e.ffn, e.hidden, e.down_lora}, k, inner, locals);
  const ValueId weighted = g.map(OpKind::mul, out, sorted_weights);
  const ValueId restored = gather(g, weighted, k, k * e.hidden);
  const ValueId sum = g.op({OpKind::mean, {restored, kNone, kNone}}, {e.hidden, Scale::tokens});
  const ValueId result = g.map(OpKind::to_like, sum, x);
  // Local variables of the function.
  for (const ValueId local : {rows, out, restored}) g.hold(local, result);
  for (const ValueId local : locals) g.hold(local, result);
  return result;
}

}  // namespace shardplan
