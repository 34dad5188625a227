// The workspace of DeepSpeed's inference kernels, one cudaMalloc beside PyTorch's allocator, which
// holds the activations of a layer and, unless it is told otherwise, the KV cache.
#pragma once

#include <cstdint>

#include "formats/dtype.h"
#include "model/model.h"

namespace shardplan {

struct InferenceWorkspace {
  std::int64_t bytes = 0;
  std::int64_t tokens = 0;  ///< prompt and new ones together, for which there is room
};

/// `free`: bytes of the GPU when it is made. Fewer tokens than `most` where they do not fit.
/// csrc/transformer/inference/includes/inference_context.h, GenWorkSpace.
InferenceWorkspace deepspeed_workspace(const ModelFacts& model, std::int64_t batch,
                                       std::int64_t most, std::int64_t tensor_parallel, DType type,
                                       std::int64_t free);

}  // namespace shardplan
