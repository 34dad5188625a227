#include "lowering/stored_weights.h"

#include "base/checked.h"
#include "program/tape.h"

namespace shardplan {
namespace {

std::int64_t allocated(std::int64_t elements, std::int64_t bytes_each) {
  return round_up(checked_mul(elements, bytes_each), kAllocationUnit);
}

}  // namespace

std::int64_t stored_bytes(const Parameter& p, DType type, Quantization quantization) {
  if (!p.quantized) return allocated(p.numel, size_of(p.adapter ? DType::f32 : type));
  const std::int64_t rows = p.shape.front(), columns = p.numel / rows;  // outputs and inputs
  const std::int64_t packed = allocated(ceil_div(p.numel, 2), 1);
  switch (quantization) {
    case Quantization::none:
      break;
    case Quantization::nf4:
      return packed + allocated(ceil_div(p.numel, 64), 4);
    case Quantization::nf4_double: {
      const std::int64_t blocks = ceil_div(p.numel, 64);
      return packed + allocated(blocks, 1) + allocated(ceil_div(blocks, 256), 4);
    }
    case Quantization::int8:
      return allocated(p.numel, 1) + allocated(rows, 4);
    case Quantization::fp8:
      return allocated(p.numel, 1) + allocated(ceil_div(rows, 128) * ceil_div(columns, 128), 4);
    case Quantization::gptq:
    case Quantization::awq: {
      const std::int64_t groups = ceil_div(columns, 128) * rows;
      const std::int64_t order = quantization == Quantization::gptq ? allocated(columns, 4) : 0;
      return packed + allocated(groups, 2) + allocated(ceil_div(groups, 2), 1) + order;
    }
  }
  return allocated(p.numel, size_of(type));
}

}  // namespace shardplan
