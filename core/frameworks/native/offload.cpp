#include "frameworks/native/offload.h"

#include <algorithm>

#include "frameworks/native/kept_on_host.h"

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

void update(ProgramBuilder& b, const Native& n, std::int64_t elements, std::int64_t in_file,
            bool ahead) {
  if (n.states_on_nvme) b.fetch_ahead(LinkKind::nvme, in_file, "optimizer states from NVMe");
  b.host_optimizer(HostOptimizer::native, checked_mul(elements, moved_by_update(n)), ahead);
  // One after the other on the way of copies: a disk that does both at once does each more slowly.
  if (n.states_on_nvme) b.store_ahead(LinkKind::nvme, in_file, "optimizer states to NVMe");
}

/// Masters and moments of one bucket in the file: direct I/O moves whole blocks.
std::int64_t bucket_in_file(const Native& n, std::int64_t elements) {
  constexpr std::int64_t kBlock = 4096;
  const Precision& p = n.plan.precision;
  std::int64_t bytes = 2 * native_tensor(elements, size_of(p.optimizer_states));
  if (p.master) bytes += native_tensor(elements, size_of(*p.master));
  return round_up(bytes, kBlock);
}
std::int64_t unit_in_file(const Native& n, const NativeUnit& u) {
  const std::int64_t shard = n.shard(u), whole = shard / kBucket, rest = shard % kBucket;
  return checked_add(checked_mul(whole, bucket_in_file(n, kBucket)),
                     rest > 0 ? bucket_in_file(n, rest) : 0);
}

/// What is in the file, and buffers for some buckets of it.
void add_nvme(const Native& n, std::int64_t largest_bucket, HostMemory& host) {
  constexpr std::int64_t kBuffers = 4, kBlock = 4096;
  std::int64_t buckets = 0;
  for (const NativeUnit& u : n.layout.units()) {
    if (u.frozen) continue;
    buckets += checked_mul(ceil_div(n.shard(u), kBucket), u.count);
    host.nvme = checked_add(host.nvme, checked_mul(unit_in_file(n, u), u.count));
  }
  const std::int64_t buffers =
      checked_mul(std::min(kBuffers, buckets), bucket_in_file(n, largest_bucket));
  host.pinned = checked_add(host.pinned, native_tensor(buffers + kBlock, 1));
}

}  // namespace

HostMemory native_host_memory(const Native& n) {
  HostMemory host;
  host.pinned = kept_on_host(n);
  if (!n.offloads) return host;
  const Precision& p = n.plan.precision;
  std::int64_t bucket = 0;
  for (const NativeUnit& u : n.layout.units()) {
    const std::int64_t shard = n.shard(u);
    const std::int64_t moved = native_tensor(shard, n.width_of(u));
    if (u.frozen) {
      if (n.parameters_on_host) host.pinned = checked_add(host.pinned, checked_mul(moved, u.count));
      continue;
    }
    bucket = std::max(bucket, std::min(shard, kBucket));
    std::int64_t pinned = (n.delayed ? 2 : 1) * moved;       // gradients
    if (n.parameters_on_host || !p.master) pinned += moved;  // what is updated and sent
    std::int64_t pageable =
        n.states_on_nvme ? 0 : 2 * native_tensor(shard, size_of(p.optimizer_states));
    if (p.master && !n.states_on_nvme) pageable += native_tensor(shard, size_of(*p.master));
    host.pinned = checked_add(host.pinned, checked_mul(pinned, u.count));
    host.pageable = checked_add(host.pageable, checked_mul(pageable, u.count));
  }
  const std::int64_t buffers = 2 * native_tensor(bucket, n.width);
  const bool adds = n.stage >= 2 && n.plan.workload.gradient_accumulation > 1;
  if (adds) host.pinned += buffers;                               // micro-batches to be added
  if (p.master && !n.parameters_on_host) host.pinned += buffers;  // rounded copies of masters
  if (n.states_on_nvme) add_nvme(n, bucket, host);
  return host;
}

void emit_update(ProgramBuilder& b, const Native& n, const NativeUnit& u) {
  if (!n.offloads || n.delayed || u.frozen) return;
  update(b, n, n.shard(u), unit_in_file(n, u), true);
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
  std::int64_t owned = 0, padded = 0, units = 0, in_file = 0;
  for (const NativeUnit& u : n.layout.units()) {
    if (u.frozen) continue;
    owned += n.shard(u) * u.count;
    padded += n.padded(u) * u.count;
    units += u.count;
    in_file += checked_mul(unit_in_file(n, u), u.count);
  }
  update(b, n, owned, in_file, !n.parameters_on_host);
  if (n.parameters_on_host) return;
  b.copy(LinkKind::host, true, owned * n.width, "updated parameters from the host");
  if (n.stage == 1 || n.stage == 2)
    b.collective(Collective::all_gather, padded * n.width, "parameter all-gather", units);
}

}  // namespace shardplan
