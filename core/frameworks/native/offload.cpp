#include "frameworks/native/offload.h"

#include <algorithm>

namespace shardplan {
namespace {

constexpr std::int64_t kBucket = std::int64_t{1} << 22;  // elements copied and updated at once

/// What the host's cores move for one element: the gradient is read, both moments and where the
/// update lives are read and written, and so is the rounded copy of a master.
std::int64_t moved_by_update(const Native& n) {
  const Precision& p = n.plan.precision;
  const std::int64_t home = p.master ? 2 * size_of(*p.master) + n.width : 2 * n.width;
  return n.width + 4 * size_of(p.optimizer_states) + home;
}

void update(ProgramBuilder& b, const Native& n, std::int64_t elements, bool ahead) {
  b.host_optimizer(HostOptimizer::native, checked_mul(elements, moved_by_update(n)), ahead);
}

}  // namespace

HostMemory native_host_memory(const Native& n) {
  HostMemory host;
  if (!n.offloads) return host;
  const Precision& p = n.plan.precision;
  std::int64_t bucket = 0;
  for (const NativeUnit& u : n.layout.units()) {
    const std::int64_t shard = n.shard(u);
    const std::int64_t moved = native_tensor(shard, n.width);
    bucket = std::max(bucket, std::min(shard, kBucket));
    std::int64_t pinned = (n.delayed ? 2 : 1) * moved;       // gradients
    if (n.parameters_on_host || !p.master) pinned += moved;  // what is updated and sent
    std::int64_t pageable = 2 * native_tensor(shard, size_of(p.optimizer_states));
    if (p.master) pageable += native_tensor(shard, size_of(*p.master));
    host.pinned = checked_add(host.pinned, checked_mul(pinned, u.count));
    host.pageable = checked_add(host.pageable, checked_mul(pageable, u.count));
  }
  const std::int64_t buffers = 2 * native_tensor(bucket, n.width);
  const bool adds = n.stage >= 2 && n.plan.workload.gradient_accumulation > 1;
  if (adds) host.pinned += buffers;                               // micro-batches to be added
  if (p.master && !n.parameters_on_host) host.pinned += buffers;  // rounded copies of masters
  return host;
}

void emit_update(ProgramBuilder& b, const Native& n, const NativeUnit& u) {
  if (!n.offloads || n.delayed) return;
  update(b, n, n.shard(u), true);
  if (!n.parameters_on_host)
    b.fetch_ahead(LinkKind::host, n.shard(u) * n.width, "updated parameters from the host");
  if (n.stage == 1 || n.stage == 2) b.gather_ahead(n.padded(u) * n.width, "parameter all-gather");
}

void emit_departure(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool last) {
  if (!n.offloads || (n.stage < 2 && !last)) return;
  b.copy(LinkKind::host, false, n.shard(u) * n.width, "gradients to the host");
}

void emit_delayed_update(ProgramBuilder& b, const Native& n) {
  if (!n.offloads || !n.delayed) return;
  std::int64_t owned = 0, padded = 0, units = 0;
  for (const NativeUnit& u : n.layout.units()) {
    owned += n.shard(u) * u.count;
    padded += n.padded(u) * u.count;
    units += u.count;
  }
  update(b, n, owned, !n.parameters_on_host);
  if (n.parameters_on_host) return;
  b.copy(LinkKind::host, true, owned * n.width, "updated parameters from the host");
  if (n.stage == 1 || n.stage == 2)
    b.collective(Collective::all_gather, padded * n.width, "parameter all-gather", units);
}

}  // namespace shardplan
