#include "lowering/tensors.h"

#include <algorithm>
#include <array>

#include "lowering/segments.h"
#include "lowering/stored_weights.h"
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

/// Blocks of one parameter's optimizer states, in the order they are made.
struct Pieces {
  std::array<std::int64_t, 4> bytes{};
  std::size_t count = 0;
  void add(std::int64_t more) { bytes[count++] = more; }
};

/// bitsandbytes: one byte a state and an fp32 scale a block of 256; small tensors and embeddings
/// stay in fp32 (optim/optimizer.py; HF Trainer's embedding override).
void add_adam_8bit(Pieces& pieces, const Parameter& p, std::int64_t numel) {
  const bool wide = numel < 4096 || p.kind == ParameterKind::embedding;
  for (int moment = 0; moment < 2; ++moment) pieces.add(rounded(numel, wide ? 4 : 1));
  for (int moment = 0; moment < 2 && !wide; ++moment) pieces.add(rounded(ceil_div(numel, 256), 4));
}

/// torch.optim.Adafactor: a row and a column of fp32 for matrices, the full square otherwise.
void add_adafactor(Pieces& pieces, const Parameter& p, std::int64_t numel) {
  if (p.shape.size() < 2) {
    pieces.add(rounded(numel, 4));
    return;
  }
  pieces.add(rounded(ceil_div(numel, p.shape.back()), 4));
  pieces.add(rounded(p.numel / p.shape[p.shape.size() - 2], 4));
}

/// torch/optim/*.py, the initialisation of `state`.
Pieces state_pieces(const Parameter& p, std::int64_t numel, const Optimizer& optimizer,
                    DType states) {
  Pieces pieces;
  const std::int64_t whole = rounded(numel, p.adapter ? 4 : size_of(states));
  switch (optimizer.kind) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      // The fused kernel keeps each tensor's step count on the GPU.
      if (optimizer.implementation == OptimizerImplementation::fused) pieces.add(kAllocationUnit);
      pieces.add(whole);
      pieces.add(whole);
      if (optimizer.amsgrad) pieces.add(whole);
      break;
    case OptimizerKind::sgd:
      if (optimizer.momentum != 0) pieces.add(whole);
      break;
    case OptimizerKind::adagrad:
    case OptimizerKind::lion:
      pieces.add(whole);
      break;
    case OptimizerKind::lamb:
      pieces.add(whole);
      pieces.add(whole);
      break;
    case OptimizerKind::adafactor:
      add_adafactor(pieces, p, numel);
      break;
    case OptimizerKind::adamw_8bit:
      add_adam_8bit(pieces, p, numel);
      break;
    case OptimizerKind::muon:
      // Momentum for hidden matrices; AdamW's two moments for everything else.
      pieces.add(whole);
      if (p.kind != ParameterKind::linear) pieces.add(whole);
      break;
  }
  return pieces;
}

}  // namespace

std::int64_t parameter_bytes(const Model& model, const Plan& plan) {
  const Quantization base = quantization_of(plan.workload);
  std::int64_t sum = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    sum = checked_add(sum, checked_mul(stored_bytes(p, plan.precision.params, base), repeat));
  });
  return sum;
}

std::int64_t trainable_bytes(const Model& model, DType type, DType adapters) {
  return sum_trainable(model, [&](const Parameter& p) {
    return rounded(p.numel, size_of(p.adapter ? adapters : type));
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

void append_tensors(std::vector<Event>& list, Category category, std::int64_t bytes,
                    std::int64_t count) {
  if (bytes == 0) return;
  Event e;
  e.category = category;
  e.bytes = bytes;
  e.count = count;
  list.push_back(e);
}

void append_parameters(std::vector<Event>& list, const Model& model, const Plan& plan) {
  const Quantization base = quantization_of(plan.workload);
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    append_tensors(list, Category::parameters, stored_bytes(p, plan.precision.params, base),
                   repeat);
  });
}

std::int64_t shard_elements(const Parameter& p, std::int64_t ranks) {
  const std::int64_t rows = p.shape.empty() ? 1 : p.shape.front();
  return checked_mul(ceil_div(rows, ranks), p.numel / rows);
}

std::vector<OwnedTensor> trainable_shards(const Model& model, std::int64_t ranks) {
  std::vector<OwnedTensor> owned;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.trainable) owned.push_back({&p, shard_elements(p, ranks), repeat});
  });
  return owned;
}

OptimizerMemory optimizer_memory(const std::vector<OwnedTensor>& owned, const Optimizer& optimizer,
                                 DType states) {
  OptimizerMemory memory;
  std::int64_t largest = 0;
  const bool foreach = optimizer.implementation == OptimizerImplementation::foreach;
  const bool fused = optimizer.implementation == OptimizerImplementation::fused;
  std::vector<Event> lists;  // temporaries of foreach: a tensor for each parameter
  std::vector<Event> matrices;
  for (const auto& [parameter, numel, repeat] : owned) {
    const Parameter& p = *parameter;
    const Pieces pieces = state_pieces(p, numel, optimizer, states);
    for (std::size_t i = 0; i < pieces.count; ++i)
      append_tensors(memory.tensors, Category::optimizer_states, pieces.bytes[i], repeat);
    const std::int64_t whole = rounded(numel, p.adapter ? 4 : size_of(states));
    append_tensors(lists, Category::workspace, whole, repeat);
    if (p.shape.size() > 1) append_tensors(matrices, Category::workspace, whole, repeat);
    largest = std::max(largest, numel);
  }
  memory.states = total_bytes(memory.tensors);
  const auto temporaries_of_largest = [&](std::int64_t n, std::int64_t bytes_each) {
    append_tensors(memory.temporaries, Category::workspace, rounded(largest, bytes_each), n);
  };
  const auto temporary_lists = [&](std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      memory.temporaries.insert(memory.temporaries.end(), lists.begin(), lists.end());
  };
  switch (optimizer.kind) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      if (foreach) temporary_lists(1);
      if (!foreach && !fused) temporaries_of_largest(2, size_of(states));
      break;
    case OptimizerKind::adagrad:
      if (foreach) temporary_lists(2);
      if (!foreach && !fused) temporaries_of_largest(2, size_of(states));
      break;
    case OptimizerKind::adafactor:
      // The estimates of the variance: of all matrices at once, or tensor by tensor.
      if (foreach) memory.temporaries = matrices;
      if (!foreach) temporaries_of_largest(1, size_of(states));
      break;
    case OptimizerKind::lion:
      temporaries_of_largest(1, size_of(states));
      break;
    case OptimizerKind::lamb:
      if (foreach) temporary_lists(1);
      if (!foreach) temporaries_of_largest(1, size_of(states));
      break;
    case OptimizerKind::muon:
      temporaries_of_largest(3, 2);
      break;
    case OptimizerKind::sgd:
    case OptimizerKind::adamw_8bit:
      break;
  }
  return memory;
}

std::vector<Event> trainable_tensors(const Model& model, Category category,
                                     std::int64_t bytes_each) {
  std::vector<Event> list;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.trainable) append_tensors(list, category, rounded(p.numel, bytes_each), repeat);
  });
  return list;
}

void emit_allocs(ProgramBuilder& b, const std::vector<Event>& tensors) {
  for (const Event& e : tensors) {
    if (e.count > 1) b.begin_repeat(e.count);
    b.alloc(e.category, e.bytes);
    if (e.count > 1) b.end_repeat();
  }
}

void emit_temporaries(ProgramBuilder& b, const std::vector<Event>& temporaries) {
  emit_allocs(b, temporaries);
  b.free(Category::workspace, total_bytes(temporaries));
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

}  // namespace shardplan
