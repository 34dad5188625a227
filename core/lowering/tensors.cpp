#include "lowering/tensors.h"

#include <algorithm>

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

}  // namespace

std::int64_t parameter_bytes(const Model& model, const Plan& plan) {
  const Quantization base = quantization_of(plan.workload);
  std::int64_t sum = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    sum = checked_add(sum, checked_mul(stored_bytes(p, plan.kept_type(), base), repeat));
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
    append_tensors(list, Category::parameters, stored_bytes(p, plan.kept_type(), base), repeat);
  });
}

void append_frozen_parameters(std::vector<Event>& list, const Model& model, const Plan& plan) {
  const Quantization base = quantization_of(plan.workload);
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.trainable)
      append_tensors(list, Category::parameters, stored_bytes(p, plan.kept_type(), base), repeat);
  });
}

std::vector<std::int64_t> trainable_in_order(const Model& model) {
  std::vector<std::int64_t> elements;
  for (const ParameterGroup& group : model.groups)
    for (std::int64_t layer = 0; layer < group.repeat; ++layer)
      for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
        const Parameter& p = model.parameters[static_cast<std::size_t>(i)];
        if (p.trainable) elements.push_back(p.numel);
      }
  return elements;
}

std::int64_t shard_elements(const Parameter& p, std::int64_t ranks) {
  const std::int64_t rows = p.shape.empty() ? 1 : p.shape.front();
  return checked_mul(ceil_div(rows, ranks), p.numel / rows);
}

std::vector<OwnedTensor> trainable_shards(const Model& model, std::int64_t ranks) {
  return trainable_parts(model, [&](const Parameter& p) { return shard_elements(p, ranks); });
}

std::vector<OwnedTensor> trainable_parts(
    const Model& model, const std::function<std::int64_t(const Parameter&)>& part) {
  std::vector<OwnedTensor> owned;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.trainable) owned.push_back({&p, part(p), repeat});
  });
  return owned;
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
  for (auto first = tensors.begin(); first != tensors.end();) {
    const auto end =
        std::find_if(first, tensors.end(), [&](const Event& e) { return e.count != first->count; });
    const std::int64_t layers = first->count;
    if (layers > 1) b.begin_repeat(layers);
    for (; first != end; ++first) b.alloc(first->category, first->bytes);
    if (layers > 1) b.end_repeat();
  }
}

std::int64_t trainable_tensors(const Model& model) {
  return sum_trainable(model, [](const Parameter&) { return std::int64_t{1}; });
}

std::int64_t clipping_transient(const Model& model) {
  const std::int64_t tensors = trainable_tensors(model);
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
