// What Megatron-LM does beside the passes of a segment.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "frameworks/megatron/options.h"
#include "frameworks/megatron/received.h"
#include "frameworks/megatron/unread_gradients.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/tensors.h"
#include "model/model.h"
#include "program/kernel.h"
#include "program/program.h"

namespace shardplan {

/// Gradients are added to their buffer: those of products by the product itself
/// (gradient_accumulation_fusion), others by a kernel.
struct MegatronHooks {
  const Model& model;
  const MegatronOptions& options;
  UnreadGradients unread;
  std::int64_t late_workspace = 0;  ///< of autograd's thread, made when it multiplies first
  std::size_t blocks_begin = 0;     ///< the first repeat of blocks
  std::int64_t named_input = 0;     ///< what the model's forward has a name for, beside their input
  ReceivedTensors received;
  std::vector<Kernel> taken;

  /// What the first backward pass makes.
  std::vector<Event> made_late() const {
    std::vector<Event> late = unread.all();
    append_tensors(late, Category::workspace, late_workspace, 1);
    return late;
  }

  bool keeps_gradient(ProgramBuilder& b) { return received.keeps_gradient(b); }
  void enter(ProgramBuilder& b, std::size_t repeat) {
    received.enter(b);
    if (repeat == blocks_begin) b.alloc(Category::activations, std::exchange(named_input, 0));
  }
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    const Parameter& p = model.parameters[static_cast<std::size_t>(id)];
    const bool product = p.kind == ParameterKind::linear || p.kind == ParameterKind::expert;
    const bool fused = product && options.gradient_accumulation_fusion;
    std::vector<Event> made;
    append_tensors(made, Category::workspace, std::exchange(late_workspace, 0), 1);
    append_tensors(made, Category::workspace, unread.made_with(id), 1);
    b.in_first_step(std::move(made));
    // Autograd is handed a tensor that nobody reads: Transformer Engine's stays, Megatron-LM's own
    // does not (tensor_parallel/layers.py, grad_added_to_main_grad).
    if (!fused || !options.transformer_engine) b.transient(Category::gradients, bytes);
    if (fused) return;
    const std::int64_t buffer = checked_mul(p.numel, size_of(options.gradients));
    taken.push_back(sweep(static_cast<double>(bytes + 2 * buffer), DType::f32, 1, Issue::autograd));
  }
  void end(ProgramBuilder& b) {
    b.compute(taken);
    taken.clear();
  }
};

}  // namespace shardplan
