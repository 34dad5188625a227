// Host and NVMe memory of DeepSpeed's offloads, for one rank.
#include <algorithm>

#include "frameworks/deepspeed/flat_states.h"
#include "frameworks/deepspeed/stages.h"
#include "program/pinned_memory.h"

namespace shardplan {
namespace {

/// Adds a tensor to the host: pinned blocks are rounded up to a power of two.
void add(HostMemory& host, std::int64_t bytes, bool pinned) {
  if (pinned) {
    host.pinned += pinned_block(bytes);
  } else {
    host.pageable += bytes;
  }
}

/// Each shard is pinned on its own when its module is built; moving it into the flat buffer gives
/// the block back to the pinning allocator, which keeps it (measured: 760 MiB for 0.6 B
/// parameters).
std::int64_t pinned_while_built(const Model& model, const Engine& e, DType type) {
  std::int64_t sum = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.trainable) sum += repeat * pinned_block(size_of(type) * ceil_div(p.numel, e.ranks_of(p)));
  });
  return sum;
}

}  // namespace

HostMemory offloaded_stage12(const Plan& plan, const Engine& e,
                             const std::vector<std::int64_t>& partitions, std::int64_t touched,
                             std::int64_t states) {
  const DeepSpeedOptions& options = plan.framework.deepspeed;
  // Until 0.18.3 stages 1 and 2 pinned whatever the file said (deepspeed #7689).
  const bool pinned =
      options.zero.offload_optimizer.pin_memory || options.version < DeepSpeedVersion{0, 18, 3};
  HostMemory host;
  for (const std::int64_t partition : partitions) {
    add(host, e.m * partition, pinned);  // master weights
    add(host, e.m * partition, pinned);  // their gradient
    if (options.version >= DeepSpeedVersion{0, 17, 1})
      add(host, e.b * partition, pinned);  // staging of the updated 16-bit parameters
  }
  add(host, states, false);            // zeros_like in pageable memory
  add(host, e.b * e.largest, pinned);  // temp_grad_buffer_for_cpu_offload
  if (plan.workload.gradient_accumulation > 1)
    add(host, e.b * touched, pinned);  // accumulated_grads_in_cpu
  return host;
}

HostMemory offloaded_stage3(const Model& model, const Plan& plan, const Engine& e,
                            const ShardLayout& layout, std::int64_t sub_group,
                            std::int64_t states) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const OffloadOptimizer& optimizer = zero.offload_optimizer;
  const OffloadParam& param = zero.offload_param;
  const std::int64_t p = layout.trainable;
  HostMemory host;
  if (optimizer.device == OffloadDevice::cpu) {
    add(host, e.m * p, false);                 // master: .to(cpu).clone(), pageable
    add(host, e.m * p, optimizer.pin_memory);  // fp32 gradients by sub-group
    add(host, e.g * p, optimizer.pin_memory);  // grad_partitions_flat_buffer
    add(host, states, false);
  } else if (optimizer.device == OffloadDevice::nvme) {
    // Files for the master, the states and the gradient; swap buffers are posix_memalign'ed and
    // locked at their exact size.
    host.nvme += 4 * p * 2 + states;
    host.pinned += checked_mul(optimizer.buffer_count, 4 * sub_group);
    add(host, e.g * p, optimizer.pin_memory);
    // The optimizer makes a sub-group's states before they are swapped.
    host.pageable += sub_group_states(e, sub_group);
  }
  if (param.device == OffloadDevice::cpu) {
    add(host, e.b * p, true);  // one flat buffer, always pinned
    if (param.pin_memory) host.pinned += pinned_while_built(model, e, plan.precision.params);
    add(host, e.b * layout.frozen, param.pin_memory);
  } else if (param.device == OffloadDevice::nvme) {
    const std::int64_t in_cpu = std::min(param.max_in_cpu, p);
    host.nvme += e.b * (p + layout.frozen - in_cpu);
    host.pinned += checked_mul(param.buffer_count * e.b, param.buffer_size);
    add(host, e.b * in_cpu, true);
    if (in_cpu < p) host.pinned += e.b * sub_group;  // reserve_partitioned_swap_space
  }
  return host;
}

}  // namespace shardplan
