// ZeRO++'s quantized collectives: how many bytes go in, out and over the wire
// (deepspeed/runtime/zero/partition_parameters.py CUDAQuantizer, runtime/comm/
// coalesced_collectives.py, csrc/quantization/pt_binding.cpp). docs/explanation/sharding.md derives
// each.
#pragma once

#include <cstdint>

#include "model/model.h"

namespace shardplan {

/// The quantizer takes tensors of a multiple of this many elements.
inline constexpr std::int64_t kQuantizedUnit = 8;

/// Blocks that CUDAQuantizer.quantize cuts `elements` in, each with one fp32 scale.
std::int64_t quantization_blocks(std::int64_t elements);

/// Bytes of `elements` in 8 bits with their scales.
std::int64_t quantized_bytes(std::int64_t elements);

/// Gradients summed in two hops of 4-bit all-to-alls, within nodes and between them.
struct QuantizedReduction {
  std::int64_t tensors = 0;         ///< that go this way
  std::int64_t in_node = 0;         ///< payload of the first hop, bytes
  std::int64_t between_nodes = 0;   ///< of the second
  std::int64_t other_elements = 0;  ///< of the tensors that are reduce-scattered, padded
  std::int64_t other_tensors = 0;
  std::int64_t buffers = 0;   ///< the most that is alive while one tensor is summed, bytes
  std::int64_t feedback = 0;  ///< LoCo's errors of all tensors, kept between steps
};

/// Vectors, and tensors that two hops over the world cannot divide, are reduce-scattered.
QuantizedReduction quantized_reduction(const Model& model, std::int64_t ranks,
                                       std::int64_t gpus_per_node, bool loco);

}  // namespace shardplan
