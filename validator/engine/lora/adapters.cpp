#include "engine/lora/adapters.h"

namespace shardplan::validator {
namespace {

Columns all_of(const Tensor& x) {
  return {x, 0, x.width()};
}

/// Calls visit(columns of y, columns of the low-rank tensor, rows of b) for each adapted layer.
template <typename Visit>
void for_each_part(const AdapterParameters& parameters, Linear l, const Tensor& y,
                   const Tensor& low, const Tensor& b, Visit&& visit) {
  const std::int64_t rank = parameters.rank;
  std::int64_t first_row = 0, first_column = 0;
  for (const LayerRows& part : parameters.of(l).parts) {
    visit(Columns{y, part.first, part.count}, Columns{low, first_column, rank},
          all_of(b.row_range(first_row, part.count)));
    first_row += part.count;
    first_column += rank;
  }
}

}  // namespace

LowRank allocate_low_rank(Arena& arena, const std::string& name,
                          const AdapterParameters& parameters, std::int64_t rows, DType dtype) {
  LowRank low;
  for (const Linear l : kLinears) {
    const auto parts = static_cast<std::int64_t>(parameters.of(l).parts.size());
    if (parts == 0) continue;
    low[static_cast<std::size_t>(l)] =
        arena.allocate(name + ".low." + std::string(name_of(l)), Category::activations, dtype,
                       {rows, parts * parameters.rank});
  }
  return low;
}

void BlockAdapters::repeat(Backend& device, Linear l, const Tensor& x) const {
  if (has(l)) device.linear_forward(low_of(l), x, unit.weight(parameters->of(l).a), {});
}

void BlockAdapters::forward(Backend& device, Linear l, const Tensor& y, const Tensor& x) const {
  if (!has(l)) return;
  const AdapterParameters::OfLinear& of = parameters->of(l);
  repeat(device, l, x);
  for_each_part(*parameters, l, y, low_of(l), unit.weight(of.b),
                [&](const Columns& out, const Columns& in, const Columns& b) {
                  device.multiply_columns({.c = out,
                                           .a = in,
                                           .b = b,
                                           .b_transposed = true,
                                           .scale = parameters->scale,
                                           .accumulate = true});
                });
}

void BlockAdapters::backward(Backend& device, Linear l, const Tensor& dy, const Tensor& x) const {
  if (!has(l)) return;
  const AdapterParameters::OfLinear& of = parameters->of(l);
  const bool add = unit.gradient.accumulate;
  const float scale = parameters->scale;
  for_each_part(*parameters, l, dy, low_of(l), unit.slope(of.b),
                [&](const Columns& out, const Columns& in, const Columns& slope) {
                  device.multiply_columns({.c = slope,
                                           .a = out,
                                           .b = in,
                                           .a_transposed = true,
                                           .scale = scale,
                                           .accumulate = add});
                });
  for_each_part(*parameters, l, dy, low_of(l), unit.weight(of.b),
                [&](const Columns& out, const Columns& in, const Columns& b) {
                  device.multiply_columns({.c = in, .a = out, .b = b, .scale = scale});
                });
  device.linear_backward_weight(unit.slope(of.a), low_of(l), x, add);
}

void BlockAdapters::add_input_gradient(Backend& device, Linear l, const Tensor& dx) const {
  if (!has(l)) return;
  device.multiply_columns({.c = all_of(dx),
                           .a = all_of(low_of(l)),
                           .b = all_of(unit.weight(parameters->of(l).a)),
                           .accumulate = true});
}

}  // namespace shardplan::validator
