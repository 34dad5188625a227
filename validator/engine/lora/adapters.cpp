#include "engine/lora/adapters.h"

namespace shardplan::validator {
namespace {

Columns all_of(const Tensor& x) {
  return {x, 0, x.width()};
}

/// Calls visit(columns of y, columns of the low-rank tensor, rows of b) for each adapted layer.
template <typename Visit>
void for_each_part(const LinearAdapters& of, const Tensor& y, const Tensor& b, Visit&& visit) {
  std::int64_t first_row = 0, first_column = 0;
  for (const LayerRows& part : of.parts) {
    const std::int64_t rank = b.width(), rows = of.experts * part.count;
    visit(Columns{y, part.first, part.count}, Columns{of.low, first_column, rank},
          all_of(b.row_range(first_row, rows)));
    first_row += rows;
    first_column += rank;
  }
}

}  // namespace

Tensor of_experts(const Tensor& all, const ExpertRows& which) {
  if (all.empty()) return all;
  const std::int64_t rows = all.shape[1], columns = all.shape[2];
  const std::int64_t below = which.experts * rows;
  return all.slice(which.expert * rows * columns, below * columns).view({below, columns});
}

LowRank allocate_low_rank(Arena& arena, const std::string& name,
                          const AdapterParameters& parameters, const AdaptedRows& rows,
                          DType dtype) {
  LowRank low;
  for (const Linear l : kLinears) {
    const AdapterParameters::OfLinear& of = parameters.of(l);
    const auto parts = static_cast<std::int64_t>(of.parts.size());
    if (parts == 0) continue;
    low[static_cast<std::size_t>(l)] =
        arena.allocate(name + ".low." + std::string(name_of(l)), Category::activations, dtype,
                       {of.of_experts ? rows.slots : rows.own, parts * parameters.rank});
  }
  return low;
}

void LinearAdapters::repeat(Backend& device, const Tensor& x) const {
  if (parts.empty()) return;
  device.multiply_columns({.c = all_of(low),
                           .a = all_of(x),
                           .b = all_of(a),
                           .b_transposed = true,
                           .bands = experts,
                           .counted = counted});
}

void LinearAdapters::forward(Backend& device, const Tensor& y, const Tensor& x) const {
  repeat(device, x);
  for_each_part(*this, y, b, [&](const Columns& out, const Columns& in, const Columns& factor) {
    device.multiply_columns({.c = out,
                             .a = in,
                             .b = factor,
                             .b_transposed = true,
                             .scale = scale,
                             .accumulate = true,
                             .bands = experts,
                             .counted = counted});
  });
}

void LinearAdapters::backward(Backend& device, const Tensor& dy, const Tensor& x) const {
  if (parts.empty()) return;
  for_each_part(*this, dy, db, [&](const Columns& out, const Columns& in, const Columns& slope) {
    device.multiply_columns({.c = slope,
                             .a = out,
                             .b = in,
                             .a_transposed = true,
                             .scale = scale,
                             .accumulate = accumulate,
                             .bands = experts,
                             .counted = counted});
  });
  for_each_part(*this, dy, b, [&](const Columns& out, const Columns& in, const Columns& factor) {
    device.multiply_columns(
        {.c = in, .a = out, .b = factor, .scale = scale, .bands = experts, .counted = counted});
  });
  device.multiply_columns({.c = all_of(da),
                           .a = all_of(low),
                           .b = all_of(x),
                           .a_transposed = true,
                           .accumulate = accumulate,
                           .bands = experts,
                           .counted = counted});
}

void LinearAdapters::add_input_gradient(Backend& device, const Tensor& dx) const {
  if (parts.empty()) return;
  device.multiply_columns({.c = all_of(dx),
                           .a = all_of(low),
                           .b = all_of(a),
                           .accumulate = true,
                           .bands = experts,
                           .counted = counted});
}

void LinearAdapters::backward_of_no_rows(Backend& device) const {
  if (parts.empty() || accumulate) return;
  device.zero(da);
  device.zero(db);
}

LinearAdapters BlockAdapters::beside(Linear l) const {
  if (!has(l)) return {};
  const AdapterParameters::OfLinear& of = parameters->of(l);
  return {.parts = of.parts,
          .a = unit.weight(of.a),
          .b = unit.weight(of.b),
          .da = unit.slope(of.a),
          .db = unit.slope(of.b),
          .low = low[static_cast<std::size_t>(l)],
          .scale = parameters->scale,
          .accumulate = unit.gradient.accumulate};
}

LinearAdapters BlockAdapters::beside(Linear l, const ExpertRows& rows) const {
  if (!has(l)) return {};
  const AdapterParameters::OfLinear& of = parameters->of(l);
  return {.parts = of.parts,
          .a = of_experts(experts.weight(of.a), rows),
          .b = of_experts(experts.weight(of.b), rows),
          .da = of_experts(experts.slope(of.a), rows),
          .db = of_experts(experts.slope(of.b), rows),
          .low = low[static_cast<std::size_t>(l)].row_range(rows.first, rows.count),
          .scale = parameters->scale,
          .accumulate = experts.gradient.accumulate,
          .experts = rows.experts,
          .counted = rows.counted};
}

}  // namespace shardplan::validator
