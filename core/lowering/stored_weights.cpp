#include "lowering/stored_weights.h"

#include "base/checked.h"
#include "program/tape.h"

namespace shardplan {

std::int64_t stored_bytes(const Parameter& p, DType type, Quantization quantization) {
  if (!p.quantized() || quantization == Quantization::none) {
    const DType own = !p.quantized() && p.adapter ? DType::f32 : type;
    return round_up(checked_mul(p.numel, size_of(own)), kAllocationUnit);
  }
  std::int64_t sum = 0;
  for (const std::int64_t bytes : bytes_of_parts(format_of(quantization), p.numel, p.shape.front()))
    sum = checked_add(sum, round_up(bytes, kAllocationUnit));
  return sum;
}

}  // namespace shardplan
