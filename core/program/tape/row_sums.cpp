#include "program/tape/row_sums.h"

#include <algorithm>
#include <bit>

namespace shardplan::tape {
namespace {

// Reduce.cuh. Where the fastest dimension is not reduced, a thread loads 4 neighbouring columns if
// they divide by that, or 2.
constexpr std::int64_t kMostThreads = 512, kWarp = 32, kThreadsOfMultiprocessor = 2048;
constexpr std::int64_t kLeastValues = 16, kMostValues = 256;  // that a thread adds

std::int64_t div_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t threads_along(std::int64_t size, std::int64_t most) {
  return size < most ? static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)))
                     : most;
}

}  // namespace

std::int64_t row_sum_scratch(std::int64_t rows, std::int64_t columns,
                             std::int64_t multiprocessors) {
  if (rows < 1 || columns < 1) return 0;
  const std::int64_t vector = columns % 4 == 0 ? 4 : columns % 2 == 0 ? 2 : 1;
  const std::int64_t most = kMostThreads / vector;
  const std::int64_t across = threads_along(columns / vector, most);
  const std::int64_t along = threads_along(rows, most);
  std::int64_t width = std::min(across, kWarp);
  const std::int64_t height = std::min(along, most / width);
  width = std::min(across, most / height);
  if (rows < std::min(height * 16, kMostValues)) return 0;  // each warp has columns of its own
  const std::int64_t values = div_up(rows, height);
  const std::int64_t grid = div_up(columns / vector, width);
  const std::int64_t target = multiprocessors * (kThreadsOfMultiprocessor / (width * height));
  if (values < kMostValues || grid > target) return 0;
  const std::int64_t blocks = std::max(std::min(div_up(target, grid), div_up(values, kLeastValues)),
                                       div_up(values, kMostValues));
  return blocks > 1 ? checked_mul(checked_mul(4 * columns, blocks), width * vector) : 0;
}

void sum_rows(Parts& p, std::int64_t rows, std::int64_t columns) {
  // Transformer Engine's modules have kernels of their own.
  if (p.options.module_calls) return;
  const std::int64_t bytes = row_sum_scratch(rows, columns, p.options.multiprocessors);
  if (bytes > 0) p.storages.unref(p.temporary_bytes(bytes));
}

void sum_repeated(Parts& p, const Op& op) {
  if (op.kind != OpKind::view || p.view.extent_of(op.in[0]).scale != Scale::one) return;
  const std::int64_t columns = elements(p.view.extent_of(op.in[0]), p.view.sizes());
  sum_rows(p, elements(p.view.extent_of(op.out), p.view.sizes()) / columns, columns);
}

void sum_segments(Parts& p, const Op& op) {
  constexpr std::int64_t kMostUnsorted = 3072, kRowsOfSegment = 10;
  if (p.graph().fuses()) return;
  const std::int64_t columns = p.view.extent_of(op.out).per;
  const std::int64_t tokens = elements(p.view.extent_of(op.out), p.view.sizes()) / columns;
  if (tokens <= kMostUnsorted) return;
  const std::int64_t rows = p.view.parameter(op.weight).numel / columns;
  const std::int64_t segments = tokens / kRowsOfSegment + std::min(tokens, rows);
  p.storages.unref(p.temporary_bytes(checked_mul(4 * columns, segments)));
}

/// A table's that is the head's weight too is added to the head's, which waits in the engine's
/// input buffer. That one is a view, the transpose of its product, so that the sum cannot reuse it
/// and is a third tensor (input_buffer.cpp, can_accumulate_inplace); where autocast cast the
/// weight, the cast made a new one of it, and the fused loss has one of its own.
void give_table(Parts& p, const Op& op) {
  if (!p.view.trains(op.weight)) return;
  const bool sums = p.view.is_head_view(op.weight);
  if (sums && p.options.takes_sums) {
    p.gradients.give_to_sum(op.weight);
    return sum_segments(p, op);
  }
  const std::int64_t bytes =
      p.view.bytes_of(p.view.parameter(op.weight), p.view.parameter_type(op.weight));
  const StorageId sum = sums ? p.storages.allocate(bytes, Category::gradients) : kExternal;
  p.gradients.give_parameter(op.weight);
  sum_segments(p, op);
  p.storages.unref(sum);
}

bool broadcasts_factor(const Parts& p, const Op& op, std::size_t k) {
  return op.kind == OpKind::mul && p.view.count_of(op.in[k]) < p.view.count_of(op.out);
}

void fit_to_factor(Parts& p, const Op& op, std::size_t k, StorageId wide) {
  const ValueId in = op.in[k];
  const StorageId sum = p.gradients.allocate_like(in, p.view.state(in).dtype);
  if (broadcasts_factor(p, op, k) && p.view.extent_of(in).scale == Scale::one) {
    const std::int64_t columns = elements(p.view.extent_of(in), p.view.sizes());
    sum_rows(p, elements(p.view.extent_of(op.out), p.view.sizes()) / columns, columns);
  }
  p.storages.unref(wide);
  p.gradients.give(in, sum);
}

}  // namespace shardplan::tape
