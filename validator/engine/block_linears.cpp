#include "engine/block_linears.h"

namespace shardplan::validator {
namespace {

struct Indices {
  int weight = -1, bias = -1;
};

Indices indices_of(const BlockParameters& p, Linear l) {
  switch (l) {
    case Linear::qkv:
      return {p.qkv_weight, p.qkv_bias};
    case Linear::out:
      return {p.out_weight, p.out_bias};
    case Linear::up:
      return {p.up_weight, p.up_bias};
    case Linear::down:
      break;
  }
  return {p.down_weight, p.down_bias};
}

}  // namespace

Tensor BlockLinears::weight(Linear l) const {
  if (quantized_.any()) return quantized_.weight(device_, l);
  return block_.weight(indices_of(parameters_, l).weight);
}

void BlockLinears::forward(Linear l, const Tensor& y, const Tensor& x, bool biased) const {
  const Tensor bias = block_.weight(indices_of(parameters_, l).bias);
  const Tensor added = biased ? bias : Tensor{};
  if (fp8_.any()) {
    Fp8Linear(ranks_, fp8_, l).forward(y, x, weight(l), added);
  } else {
    device_.linear_forward(y, x, weight(l), added);
  }
  adapters_.beside(l).forward(device_, y, x);
}

void BlockLinears::repeat_read(Linear l, const Tensor& x) const {
  if (fp8_.any()) Fp8Linear(ranks_, fp8_, l).repeat(x, weight(l));
  adapters_.beside(l).repeat(device_, x);
}

bool BlockLinears::backward(Linear l, const Tensor& dy, const Tensor& x, const Tensor& dx) const {
  const Indices at = indices_of(parameters_, l);
  const bool add = block_.gradient.accumulate;
  if (const Tensor slope = block_.slope(at.bias); !slope.empty())
    device_.linear_backward_bias(slope, dy, add);
  const Tensor slope = block_.slope(at.weight);
  if (!slope.empty() && !fp8_.any()) device_.linear_backward_weight(slope, dy, x, add);
  const LinearAdapters beside = adapters_.beside(l);
  beside.backward(device_, dy, x);
  if (!adapters_.needs_input(l)) return false;
  if (fp8_.any()) {
    Fp8Linear(ranks_, fp8_, l).backward(slope, add, dx, dy, x, weight(l));
  } else {
    device_.linear_backward_input(dx, dy, weight(l));
  }
  beside.add_input_gradient(device_, dx);
  return true;
}

}  // namespace shardplan::validator
