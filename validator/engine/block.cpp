#include "engine/block.h"

namespace shardplan::validator {
namespace {

/// Adds to the gradient of the residual stream that a norm reads.
NormBackward back_through(const NormForward& f, const Tensor& dout, const Tensor& dresidual) {
  return {.kind = f.kind,
          .dx = dresidual,
          .accumulate_dx = true,
          .dout = dout,
          .x = f.x,
          .mean = f.mean,
          .rstd = f.rstd,
          .weight = f.weight};
}

MlpRanks mlp_ranks(const TensorRanks& ranks, const BlockParts& parts) {
  return {ranks, parts.experts.ranks, parts.experts.tally};
}

}  // namespace

UnitTensors& BlockParts::unit(Unit::Kind kind) {
  switch (kind) {
    case Unit::Kind::experts:
      return experts.unit;
    case Unit::Kind::quantized:
      return quantized.unit;
    case Unit::Kind::quantized_experts:
      return quantized.experts;
    case Unit::Kind::expert_adapters:
      return adapters.experts;
    default:
      return adapters.unit;
  }
}

BlockActivations in_the_place_of(const BlockActivations& other) {
  BlockActivations a = other;
  if (a.mlp.counted) a.mlp.counted = std::make_shared<std::vector<std::int32_t>>();
  return a;
}

SharedActivations Block::allocate_shared(Arena& arena) const {
  const std::int64_t rows = heads_.rows();
  const auto tensor = [&](const char* name, Shape shape) {
    return arena.allocate(std::string("renewed.") + name, Category::activations, dtype_, shape);
  };
  SharedActivations shared;
  BlockActivations& a = shared.made;
  a.norm1 = tensor("norm1", {part(), spec_.hidden});
  if (again_.has(Linear::qkv)) a.qkv = tensor("qkv", {rows, heads_.packed_width()});
  if (spec_.head_norms) a.heads = tensor("heads", {rows, heads_.packed_width()});
  if (again_.has(Linear::out)) {
    shared.branch = tensor("branch", {part(), spec_.hidden});
    a.mid = tensor("mid", {part(), spec_.hidden});
  }
  a.norm2 = tensor("norm2", {part(), spec_.hidden});
  a.mlp = mlp_->allocate_shared(arena);
  return shared;
}

BlockActivations Block::allocate(Arena& arena, const std::string& name, Keep keep,
                                 const SharedActivations& others) const {
  const BlockActivations& shared = others.made;
  const std::int64_t rows = heads_.rows();
  const auto tensor = [&](const char* what, DType dtype, Shape shape) {
    return arena.allocate(name + "." + what, Category::activations, dtype, shape);
  };
  const auto renewed = [&](const char* what, const Tensor& other, Shape shape) {
    return keep == Keep::products ? other : tensor(what, dtype_, shape);
  };
  const auto product = [&](Linear l, const char* what, const Tensor& other, Shape shape) {
    return again_.has(l) ? renewed(what, other, shape) : tensor(what, dtype_, shape);
  };
  const DType statistic = statistic_type(dtype_);
  const bool layer = spec_.norm == NormKind::layer;
  BlockActivations a;
  if (layer) a.mean1 = tensor("mean1", statistic, {part()});
  a.rstd1 = tensor("rstd1", statistic, {part()});
  a.norm1 = renewed("norm1", shared.norm1, {part(), spec_.hidden});
  a.qkv = product(Linear::qkv, "qkv", shared.qkv, {rows, heads_.packed_width()});
  a.heads = a.qkv;
  if (spec_.head_norms) {
    a.head_rstd =
        tensor("head_rstd", statistic, {rows, heads_.query_heads + heads_.key_value_heads});
    a.heads = renewed("heads", shared.heads, {rows, heads_.packed_width()});
  }
  a.lse = tensor("lse", statistic, {heads_.batch, heads_.query_heads, heads_.sequence});
  a.attended = tensor("attended", dtype_, {rows, heads_.query_width()});
  a.mid = product(Linear::out, "mid", shared.mid, {part(), spec_.hidden});
  if (layer) a.mean2 = tensor("mean2", statistic, {part()});
  a.rstd2 = tensor("rstd2", statistic, {part()});
  a.norm2 = renewed("norm2", shared.norm2, {part(), spec_.hidden});
  a.mlp = mlp_->allocate(arena, name, keep, shared.mlp);
  a.low = allocate_low_rank(arena, name, adapters_, {rows, mlp_->slots()}, dtype_);
  a.fp8_scales = allocate_fp8_scales(arena, name, fp8_, spec_);
  return a;
}

BlockScratch Block::allocate_scratch(Arena& arena) const {
  const std::int64_t rows = heads_.rows();
  return {
      arena.allocate("gradient.attended", Category::activations, dtype_,
                     {rows, heads_.query_width()}),
      arena.allocate("gradient.qkv", Category::activations, dtype_, {rows, heads_.packed_width()})};
}

NormForward Block::norm1(const Unit& unit, const Tensor& w, const BlockActivations& a) const {
  return {.kind = spec_.norm,
          .epsilon = spec_.epsilon,
          .out = a.norm1,
          .mean = a.mean1,
          .rstd = a.rstd1,
          .x = a.x,
          .weight = unit.parameter(w, parameters_.norm1_weight),
          .bias = unit.parameter(w, parameters_.norm1_bias)};
}

NormForward Block::norm2(const Unit& unit, const Tensor& w, const BlockActivations& a) const {
  return {.kind = spec_.norm,
          .epsilon = spec_.epsilon,
          .out = a.norm2,
          .mean = a.mean2,
          .rstd = a.rstd2,
          .x = a.mid,
          .weight = unit.parameter(w, parameters_.norm2_weight),
          .bias = unit.parameter(w, parameters_.norm2_bias)};
}

/// From the projection to what attention reads: head norms out of place, rotary in place.
void Block::turn_heads(const TensorRanks& ranks, const Unit& unit, const Tensor& w,
                       const BlockActivations& a, const Tensor& rotary) const {
  if (spec_.head_norms)
    ranks.device().head_norm_forward({.heads = heads_,
                                      .epsilon = spec_.epsilon,
                                      .out = a.heads,
                                      .rstd = a.head_rstd,
                                      .qkv = a.qkv,
                                      .q_weight = unit.parameter(w, parameters_.q_norm),
                                      .k_weight = unit.parameter(w, parameters_.k_norm)});
  if (spec_.rotary) ranks.device().rotary(a.heads, rotary, heads_, false);
}

BlockLinears Block::linears_of(const TensorRanks& ranks, const Unit& unit, const Tensor& w,
                               const OpenGradient& gradient, const BlockActivations& a,
                               const BlockParts& parts) const {
  BlockAdapters adapters = parts.adapters;
  adapters.low = a.low;
  BlockFp8 fp8 = parts.fp8;
  fp8.kept = a.fp8_scales;
  return {ranks,           parameters_,         {&unit, w, gradient},
          parts.quantized, std::move(adapters), std::move(fp8)};
}

void Block::attention_half(const TensorRanks& ranks, const Unit& unit, const Tensor& w,
                           const BlockActivations& a, const Residual& in, const Tensor& branch,
                           const Tensor& rotary, const BlockLinears& linears) const {
  Backend& device = ranks.device();
  NormForward first = norm1(unit, w, a);
  first.x = in.x;
  first.branch = in.branch;
  if (!in.branch.empty()) first.sum = a.x;
  device.norm_forward(first);
  project(ranks, unit, w, a, rotary, linears);
  attention_->forward({.heads = heads_, .out = a.attended, .lse = a.lse, .qkv = a.heads});
  project_back(ranks, a, branch, linears);
}

void Block::project(const TensorRanks& ranks, const Unit& unit, const Tensor& w,
                    const BlockActivations& a, const Tensor& rotary,
                    const BlockLinears& linears) const {
  linears.forward(Linear::qkv, a.qkv, ranks.gather(a.norm1, ranks.values()));
  turn_heads(ranks, unit, w, a, rotary);
}

void Block::project_back(const TensorRanks& ranks, const BlockActivations& a, const Tensor& branch,
                         const BlockLinears& linears) const {
  // This rank's rows of the projection, summed over the ranks.
  const Tensor addend = ranks.addend(branch, ranks.values());
  linears.forward(Linear::out, addend, a.attended, ranks.first());
  ranks.sum(branch, addend);
}

void Block::middle(const TensorRanks& ranks, const Unit& unit, const Tensor& w,
                   const BlockActivations& a, const Tensor& branch) const {
  NormForward second = norm2(unit, w, a);
  second.x = a.x;
  second.branch = branch;
  second.sum = a.mid;
  ranks.device().norm_forward(second);
}

void Block::forward(const TensorRanks& ranks, const Unit& unit, const Tensor& w,
                    const BlockActivations& a, const Residual& in, const Tensor& branch,
                    const Tensor& rotary, const BlockParts& parts) const {
  const BlockLinears linears = linears_of(ranks, unit, w, {}, a, parts);
  attention_half(ranks, unit, w, a, in, branch, rotary, linears);
  middle(ranks, unit, w, a, branch);
  mlp_->forward(mlp_ranks(ranks, parts), {{&unit, w, {}}, linears, parts.experts.unit}, a.mlp,
                a.norm2, branch);
}

void Block::repeat(const TensorRanks& ranks, const Unit& unit, const Tensor& w,
                   const BlockActivations& a, const Tensor& branch, const Tensor& rotary,
                   const BlockParts& parts) const {
  const BlockLinears linears = linears_of(ranks, unit, w, {}, a, parts);
  attention_half(ranks, unit, w, a, {a.x, {}}, branch, rotary, linears);
  middle(ranks, unit, w, a, branch);
  mlp_->repeat(mlp_ranks(ranks, parts), {{&unit, w, {}}, linears, parts.experts.unit}, a.mlp,
               a.norm2);
}

void Block::renew(const TensorRanks& ranks, const Unit& unit, const Tensor& w,
                  const BlockActivations& a, const Tensor& branch, const Tensor& rotary,
                  const BlockParts& parts) const {
  Backend& device = ranks.device();
  const BlockLinears linears = linears_of(ranks, unit, w, {}, a, parts);
  device.norm_forward(norm1(unit, w, a));
  if (again_.has(Linear::qkv)) {
    project(ranks, unit, w, a, rotary, linears);
  } else if (spec_.head_norms) {
    turn_heads(ranks, unit, w, a, rotary);
  }
  if (again_.has(Linear::out)) {
    project_back(ranks, a, branch, linears);
    middle(ranks, unit, w, a, branch);
  } else {
    device.norm_forward(norm2(unit, w, a));
  }
  mlp_->renew(mlp_ranks(ranks, parts), {{&unit, w, {}}, linears, parts.experts.unit}, a.mlp,
              a.norm2);
}

void Block::backward(const TensorRanks& ranks, const Unit& unit, const Tensor& w,
                     const OpenGradient& gradient, const BlockActivations& a,
                     const BlockScratch& scratch, const Tensor& dresidual, const Tensor& rotary,
                     const BlockParts& parts) const {
  Backend& device = ranks.device();
  const auto& p = parameters_;
  const bool add = gradient.accumulate;
  const auto weight = [&](int index) { return unit.parameter(w, index); };
  const auto slope = [&](int index) { return unit.parameter(gradient.flat, index); };
  const BlockLinears linears = linears_of(ranks, unit, w, gradient, a, parts);
  const auto norm = [&](const NormForward& f, int w_index, int b_index, const Tensor& dout) {
    NormBackward o = back_through(f, dout, dresidual);
    o.dweight = slope(w_index);
    o.dbias = slope(b_index);
    o.accumulate_weights = add;
    device.norm_backward(o);
  };

  // Each step ends the pass where nothing below it is trained.
  if (!mlp_->backward(mlp_ranks(ranks, parts), {{&unit, w, gradient}, linears, parts.experts.unit},
                      a.mlp, a.norm2, dresidual))
    return;
  norm(norm2(unit, w, a), p.norm2_weight, p.norm2_bias, a.norm2);

  if (!linears.backward(Linear::out, ranks.gather(dresidual, ranks.gradients()), a.attended,
                        scratch.dattended))
    return;
  attention_->backward({.heads = heads_,
                        .dqkv = scratch.dqkv,
                        .dout = scratch.dattended,
                        .out = a.attended,
                        .lse = a.lse,
                        .qkv = a.heads});
  if (spec_.rotary) device.rotary(scratch.dqkv, rotary, heads_, true);
  if (spec_.head_norms)
    device.head_norm_backward({.heads = heads_,
                               .dqkv = scratch.dqkv,
                               .dq_weight = slope(p.q_norm),
                               .dk_weight = slope(p.k_norm),
                               .accumulate_weights = add,
                               .qkv = a.qkv,
                               .rstd = a.head_rstd,
                               .q_weight = weight(p.q_norm),
                               .k_weight = weight(p.k_norm)});
  const Tensor read = ranks.gather(a.norm1, ranks.values());
  if (!linears.backward(Linear::qkv, scratch.dqkv, read, read)) return;
  ranks.sum(a.norm1, read);
  norm(norm1(unit, w, a), p.norm1_weight, p.norm1_bias, a.norm1);
}

}  // namespace shardplan::validator
