#include "lowering/tensors.h"

#include <algorithm>

#include "lowering/segments.h"
#include "program/tape.h"

namespace shardplan {
namespace {

std::int64_t rounded(std::int64_t elements, std::int64_t bytes_each) {
  return round_up(checked_mul(elements, bytes_each), kAllocationUnit);
}

template <typename BytesOf>
std::int64_t sum_trainable(const Model& model, BytesOf&& bytes_of) {
  std::int64_t sum = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.trainable) sum = checked_add(sum, checked_mul(bytes_of(p), repeat));
  });
  return sum;
}

/// bitsandbytes: one byte a state and an fp32 scale a block of 256; small tensors and embeddings
/// stay in fp32 (optim/optimizer.py; HF Trainer's embedding override).
std::int64_t adam_8bit_bytes(const Parameter& p) {
  if (p.numel < 4096 || p.kind == ParameterKind::embedding) return 2 * rounded(p.numel, 4);
  return 2 * (rounded(p.numel, 1) + rounded(ceil_div(p.numel, 256), 4));
}

/// torch.optim.Adafactor: a row and a column of fp32 for matrices, the full square otherwise.
std::int64_t adafactor_bytes(const Parameter& p) {
  if (p.shape.size() < 2) return rounded(p.numel, 4);
  const std::int64_t last = p.shape.back();
  const std::int64_t row = p.numel / last;
  const std::int64_t column = p.numel / p.shape[p.shape.size() - 2];
  return rounded(row, 4) + rounded(column, 4);
}

}  // namespace

std::int64_t parameter_bytes(const Model& model, const Precision& precision) {
  std::int64_t sum = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    const DType type = p.adapter ? DType::f32 : precision.params;
    sum = checked_add(sum, checked_mul(rounded(p.numel, size_of(type)), repeat));
  });
  return sum;
}

std::int64_t trainable_bytes(const Model& model, DType type) {
  return sum_trainable(model, [&](const Parameter& p) {
    return rounded(p.numel, size_of(p.adapter ? DType::f32 : type));
  });
}

std::int64_t largest_trainable(const Model& model) {
  std::int64_t largest = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t) {
    if (p.trainable) largest = std::max(largest, p.numel);
  });
  return largest;
}

std::int64_t state_bytes_per_element(const Optimizer& optimizer, DType states) {
  const std::int64_t one = size_of(states);
  switch (optimizer.kind) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return (optimizer.amsgrad ? 3 : 2) * one;
    case OptimizerKind::lamb:
      return 2 * one;
    case OptimizerKind::sgd:
      return optimizer.momentum != 0 ? one : 0;
    case OptimizerKind::adagrad:
    case OptimizerKind::lion:
    case OptimizerKind::muon:
      return one;
    case OptimizerKind::adamw_8bit:
      return 2;
    case OptimizerKind::adafactor:
      return 0;
  }
  return 0;
}

OptimizerMemory optimizer_memory(const Model& model, const Optimizer& optimizer, DType states) {
  OptimizerMemory memory;
  const std::int64_t one = size_of(states);
  const auto state_type = [&](const Parameter& p) { return p.adapter ? std::int64_t{4} : one; };
  const std::int64_t list =
      sum_trainable(model, [&](const Parameter& p) { return rounded(p.numel, state_type(p)); });
  const std::int64_t matrices = sum_trainable(model, [&](const Parameter& p) {
    return p.shape.size() < 2 ? 0 : rounded(p.numel, state_type(p));
  });
  const std::int64_t largest = rounded(largest_trainable(model), one);
  const auto same_size_states = [&](std::int64_t n) { return checked_mul(list, n); };
  const bool fused = optimizer.implementation == OptimizerImplementation::fused;
  const bool foreach = optimizer.implementation == OptimizerImplementation::foreach;
  switch (optimizer.kind) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      memory.states = same_size_states(optimizer.amsgrad ? 3 : 2);
      // The fused kernel keeps each tensor's step count on the GPU.
      if (fused)
        memory.states += sum_trainable(model, [](const Parameter&) { return kAllocationUnit; });
      memory.step_transient = fused ? 0 : foreach ? list : 2 * largest;
      break;
    case OptimizerKind::sgd:
      memory.states = optimizer.momentum != 0 ? list : 0;
      break;
    case OptimizerKind::adagrad:
      memory.states = list;
      memory.step_transient = fused ? 0 : foreach ? 2 * list : 2 * largest;
      break;
    case OptimizerKind::lion:
      memory.states = list;
      memory.step_transient = largest;
      break;
    case OptimizerKind::lamb:
      memory.states = same_size_states(2);
      memory.step_transient = foreach ? list : largest;
      break;
    case OptimizerKind::adafactor:
      memory.states = sum_trainable(model, adafactor_bytes);
      // The estimates of the variance: of every matrix at once, or tensor by tensor.
      memory.step_transient = foreach ? matrices : largest;
      break;
    case OptimizerKind::adamw_8bit:
      memory.states = sum_trainable(model, adam_8bit_bytes);
      break;
    case OptimizerKind::muon:
      // Momentum for hidden matrices; AdamW's two moments for everything else.
      memory.states = sum_trainable(model, [&](const Parameter& p) {
        const std::int64_t moments = p.kind == ParameterKind::linear ? 1 : 2;
        return moments * rounded(p.numel, state_type(p));
      });
      memory.step_transient = 3 * rounded(largest_trainable(model), 2);
      break;
  }
  return memory;
}

std::int64_t clipping_transient(const Model& model) {
  const std::int64_t tensors =
      sum_trainable(model, [](const Parameter&) { return std::int64_t{1}; });
  const std::int64_t chunks = ceil_div(largest_trainable(model), 65536);
  return rounded(checked_mul(tensors, chunks), 4) + tensors * kAllocationUnit;
}

std::int64_t batch_bytes(const Plan& plan) {
  const Sizes n = sizes_of(plan);
  std::int64_t bytes = rounded(checked_mul(n.batch, n.sequence), 8);
  if (plan.workload.target_length > 0) bytes += rounded(checked_mul(n.batch, n.target), 8);
  return bytes;
}

std::int64_t cublas_workspaces(const Gpu& gpu) {
  const std::int64_t hopper_and_later = 32 * 1024 * 1024;
  const std::int64_t before = 8 * 1024 * 1024 + 128 * 1024;
  const int major = gpu.compute_capability.empty() ? 0 : std::stoi(gpu.compute_capability);
  return 2 * (major >= 9 ? hopper_and_later : before);
}

}  // namespace shardplan
