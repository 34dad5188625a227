#include "frameworks/deepspeed/quantize.h"

#include <algorithm>

#include "base/checked.h"

namespace shardplan {
namespace {

constexpr std::int64_t kTargetBlock = 8000;  ///< CUDAQuantizer.target_group_size
constexpr std::int64_t kScale = 4;           ///< bytes: pt_binding.cpp makes fp32 scales

/// The smallest divisor of `whole` that is at least `least`.
std::int64_t divisor_from(std::int64_t whole, std::int64_t least) {
  std::int64_t best = whole;
  for (std::int64_t d = 1; d * d <= whole; ++d) {
    if (whole % d != 0) continue;
    if (d >= least) return d;
    if (whole / d >= least) best = whole / d;
  }
  return best;
}

/// What all_to_all_quant_reduce allocates for one tensor of n elements, in the order of its lines.
struct TwoHops {
  std::int64_t blocks = 0, later_blocks = 0;  ///< of the first and of the second hop
  std::int64_t packed = 0, later_packed = 0;  ///< 4-bit payloads without scales, bytes
  std::int64_t result = 0;                    ///< the second hop's, widened to fp16

  TwoHops(const Parameter& p, std::int64_t ranks, std::int64_t gpus_per_node)
      : blocks(std::max({p.shape[0], p.shape[1], ranks})),
        later_blocks(blocks / gpus_per_node),
        packed(p.numel / 2),
        later_packed(packed / gpus_per_node),
        result(4 * later_packed) {}

  std::int64_t sent_in_node() const { return packed + kScale * blocks; }
  std::int64_t sent_between() const { return later_packed + kScale * later_blocks; }
  /// Both hops keep what they sent and what they received. The names of one tensor's buffers are
  /// bound to the next tensor's one by one, so that the first of those comes on top.
  std::int64_t alive() const {
    return 2 * sent_in_node() + 2 * sent_between() + result + sent_in_node();
  }
};

}  // namespace

std::int64_t quantization_blocks(std::int64_t elements) {
  if (elements <= 0) return 0;
  const std::int64_t least = ceil_div(elements, kTargetBlock);
  if (elements % kQuantizedUnit != 0) return least;       // refused before: parallel/sharding.h
  return divisor_from(elements / kQuantizedUnit, least);  // blocks of a multiple of 8 elements
}

std::int64_t quantized_bytes(std::int64_t elements) {
  return elements + kScale * quantization_blocks(elements);
}

QuantizedReduction quantized_reduction(const Model& model, std::int64_t ranks,
                                       std::int64_t gpus_per_node, bool loco) {
  QuantizedReduction sum;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.trainable) return;
    if (p.shape.size() < 2 || p.numel % (2 * ranks) != 0) {
      sum.other_tensors += repeat;
      sum.other_elements += checked_mul(round_up(p.numel, ranks), repeat);
      return;
    }
    const TwoHops hops(p, ranks, gpus_per_node);
    sum.tensors += repeat;
    sum.in_node += checked_mul(hops.sent_in_node(), repeat);
    sum.between_nodes += checked_mul(hops.sent_between(), repeat);
    std::int64_t alive = hops.alive();
    if (loco) {
      const std::int64_t kept = p.numel + kScale * hops.blocks;
      const std::int64_t later = p.numel / gpus_per_node + kScale * hops.later_blocks;
      sum.feedback += checked_mul(kept + later, repeat);
      // Both errors are widened to fp16; the new ones are made before the old ones go.
      alive += 2 * p.numel + 2 * (p.numel / gpus_per_node) + kept;
    }
    sum.buffers = std::max(sum.buffers, alive);
  });
  return sum;
}

}  // namespace shardplan
