// What DeepSpeed 0.19's optimizers start on the GPU for gradients, beside collectives and the
// update itself: loops of Python over tensors, a launch or more for each
// (runtime/zero/stage_1_and_2.py, runtime/bf16_optimizer.py, runtime/fp16/fused_optimizer.py).
#pragma once

#include <cstdint>
#include <vector>

#include "frameworks/deepspeed/engine.h"
#include "program/kernel.h"

namespace shardplan {

/// Gradients of `tensors` tensors with `elements` in all.
struct GradientList {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;

  void add(std::int64_t of_one) {
    ++tensors;
    elements += of_one;
  }
};

/// A hook's copy of each into a bucket of the same type (reduce_independent_p_g_buckets_and_...).
std::vector<Kernel> bucket_copies(const Engine& e, const GradientList& gradients);
/// What flushes do with what they send, beside sending it: averages, and copies of this rank's part
/// out of the bucket (average_tensor, copy_grads_in_partition).
std::vector<Kernel> flush_kernels(const Engine& e, const GradientList& sent);
/// Each gradient cast and added to the fp32 one (BF16_Optimizer._update_hp_grad).
std::vector<Kernel> accumulation_kernels(const Engine& e, const GradientList& gradients);

/// The check for infinities: nothing where the type of `e` is not checked.
std::vector<Kernel> overflow_kernels(const Engine& e, const GradientList& own);
/// Stages 1 and 2, this rank's part, when the check has been read: norms in double, the flat copy,
/// its fp32 cast, clipping.
std::vector<Kernel> flat_gradient_kernels(const Engine& e, const GradientList& own);
/// The parameters' own type, out of the masters.
std::vector<Kernel> parameter_casts(const Engine& e, const GradientList& own);
/// BF16_Optimizer.step up to the update: norms of the fp32 gradients, clipping.
std::vector<Kernel> fp32_gradient_kernels(const GradientList& own);
/// FP16_UnfusedOptimizer.step up to the update, tensor by tensor: a cast for the norm, the norm,
/// the gradient's cast, clipping.
std::vector<Kernel> apart_gradient_kernels(const Engine& e, const GradientList& all);
/// FP16_Optimizer.step: casts of every gradient, their flat copy, its norm, clipping.
std::vector<Kernel> whole_gradient_kernels(const Engine& e, const GradientList& all);

}  // namespace shardplan
