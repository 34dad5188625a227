// Runs one segment's graph the way eager PyTorch does and writes down every allocation.
//
// The forward pass counts references: a tensor dies when no Python name and no autograd node
// refers to it any more. The backward pass visits the nodes in reverse order: it allocates the
// gradients of a node's inputs, then lets go of the node's incoming gradient and of what it saved.
// Rules: PyTorch tools/autograd/derivatives.yaml, torch/csrc/autograd/engine.cpp and
// aten/src/ATen/autocast_mode.h.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "model/model.h"
#include "program/category.h"

namespace shardplan {

/// The element types of a segment's run.
struct Regime {
  DType params = DType::f32;
  DType compute = DType::f32;  ///< other than params: torch.autocast to this type
  bool autocast() const { return params != compute; }
};

struct TapeEvent {
  enum class Kind : std::uint8_t {
    alloc,     ///< `bytes` of storage `id`
    free,      ///< the same bytes
    fetch,     ///< module `id` needs its parameters
    release,   ///< module `id` is done with them
    gradient,  ///< the gradient of parameter `id` appears, `bytes` long
  };
  Kind kind = Kind::alloc;
  Category category = Category::activations;
  std::int32_t id = 0;
  std::int64_t bytes = 0;  ///< already rounded to the allocator's 512-byte blocks
};

struct TapeCost {
  double flops = 0;
  double moved_bytes = 0;  ///< read and written by all ops together
  std::int64_t kernels = 0;
};

struct TapeRun {
  std::vector<TapeEvent> forward;
  std::vector<TapeEvent> backward;
  DType output_dtype = DType::f32;
  bool output_needs_grad = true;
  std::int64_t output_bytes = 0;  ///< of the chained output, alive when forward ends
  /// Autocast's cache of cast weights that outlives the forward events of a run that keeps nothing.
  std::int64_t autocast_cache = 0;
  TapeCost forward_cost, backward_cost;
  std::vector<std::int32_t> saved_shared;  ///< indices in Model::shared that autograd keeps
};

enum class TapeMode : std::uint8_t {
  keep,     ///< an ordinary forward and its backward
  discard,  ///< a checkpointed forward: keeps only its inputs; `backward` stays empty
  redo,     ///< the recomputation and its backward, both in `backward`
};

/// Sizes of PyTorch's allocation unit: every tensor takes a multiple of it.
inline constexpr std::int64_t kAllocationUnit = 512;

/// Runs `segment`. `input` is the dtype of the chained input, which may not need a gradient: the
/// first layer's, when the embeddings are frozen. Slots of storages are numbered from
/// 0 in each run; slot -1 is the chained input and slot -2 the chained output's gradient.
TapeRun run_tape(const Model& model, const Segment& segment, const Regime& regime,
                 const Sizes& sizes, DType input, TapeMode mode, bool input_needs_grad = true);

}  // namespace shardplan
