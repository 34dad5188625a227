#include "frameworks/native/offload.h"

#include <algorithm>
#include <string_view>

#include "frameworks/native/kept_on_host.h"

namespace shardplan {
namespace {

constexpr std::int64_t kBucket = std::int64_t{1} << 22;  // elements copied and updated at once
constexpr std::int64_t kBlock = 4096;                    // what direct I/O moves

constexpr std::string_view kShardsFromFile = "parameter shards from NVMe";
constexpr std::string_view kShardsToFile = "parameter shards to NVMe";

/// What the host's cores move for one element: the gradient is read, both moments and where the
/// update lives are read and written, and so is the rounded copy of a master.
std::int64_t moved_by_update(const Native& n) {
  const Precision& p = n.plan.precision;
  const std::int64_t home = p.master ? 2 * size_of(*p.master) + n.width : 2 * n.width;
  return n.width + 4 * size_of(p.optimizer_states) + home;
}

/// Moments in bf16, or parameters without masters, are rounded at random.
HostOptimizer updater(const Native& n) {
  const Precision& p = n.plan.precision;
  const bool rounds = size_of(p.optimizer_states) == 2 || (!p.master && n.width == 2);
  return rounds ? HostOptimizer::native_rounding : HostOptimizer::native;
}

void update(ProgramBuilder& b, const Native& n, std::int64_t elements, std::int64_t in_file,
            bool ahead) {
  if (n.states_on_nvme) b.fetch_ahead(LinkKind::nvme, in_file, "optimizer states from NVMe");
  b.host_optimizer(updater(n), checked_mul(elements, moved_by_update(n)), ahead);
  // One after the other on the way of copies: a disk that does both at once does each more slowly.
  if (n.states_on_nvme) b.store_ahead(LinkKind::nvme, in_file, "optimizer states to NVMe");
}

/// Masters and moments of one bucket in the file.
std::int64_t bucket_in_file(const Native& n, std::int64_t elements) {
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
  constexpr std::int64_t kBuffers = 4;
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

/// A unit's parameters in the file.
std::int64_t shard_in_file(const Native& n, const NativeUnit& u) {
  return round_up(checked_mul(n.shard(u), n.width_of(u)), kBlock);
}

/// What is in the file, and a buffer for each slot that units are gathered in.
void add_shards(const Native& n, HostMemory& host) {
  for (const NativeUnit& u : n.layout.units())
    host.nvme = checked_add(host.nvme, checked_mul(shard_in_file(n, u), u.count));
  std::int64_t buffers = kBlock;
  for (const std::int64_t slot :
       n.slots(false, [&](const NativeUnit& u) { return shard_in_file(n, u); }))
    buffers = checked_add(buffers, slot);
  host.pinned = checked_add(host.pinned, native_tensor(buffers, 1));
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
    const bool pins_parameters = n.parameters_on_host && !n.parameters_on_nvme;
    if (u.frozen) {
      if (pins_parameters) host.pinned = checked_add(host.pinned, checked_mul(moved, u.count));
      continue;
    }
    bucket = std::max(bucket, std::min(shard, kBucket));
    std::int64_t pinned = (n.delayed ? 2 : 1) * moved;  // gradients
    if (pins_parameters || (!p.master && !n.parameters_on_host))
      pinned += moved;  // what is updated and sent
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
  if (n.parameters_on_nvme) add_shards(n, host);
  return host;
}

/// max_device_cache_size_kb of cufile.json as it is installed
/// (https://docs.nvidia.com/gpudirect-storage/configuration-guide/): for what is not aligned to 4
/// KiB, as shards' ends are not. Its compatibility mode was measured to take 22 to 24 MiB.
std::int64_t cufile_at_most(const Native& n) {
  constexpr std::int64_t kDeviceCache = std::int64_t{131072} << 10;
  return n.plan.framework.native.use_gds ? kDeviceCache : 0;
}

void emit_shard(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool read) {
  if (!n.parameters_on_host) return;
  if (n.parameters_on_nvme && read)
    b.fetch_ahead(LinkKind::nvme, shard_in_file(n, u), kShardsFromFile);
  b.fetch_ahead(LinkKind::host, n.shard(u) * n.width_of(u), "parameter shards to the GPU");
}

void emit_turn(ProgramBuilder& b, const Native& n) {
  if (n.parameters_on_nvme) b.follow(Stream::copy);
}

void emit_update(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool read) {
  if (!n.offloads || n.delayed || u.frozen) return;
  // With a master nothing that was there is read.
  if (n.parameters_on_nvme && read && !n.plan.precision.master)
    b.fetch_ahead(LinkKind::nvme, shard_in_file(n, u), kShardsFromFile);
  update(b, n, n.shard(u), unit_in_file(n, u), true);
  if (n.parameters_on_nvme) b.store_ahead(LinkKind::nvme, shard_in_file(n, u), kShardsToFile);
  if (!n.parameters_on_host)
    b.fetch_ahead(LinkKind::host, n.shard(u) * n.width, "updated parameters from the host");
  if (n.stage == 1 || n.stage == 2)
    b.gather_ahead(n.padded(u) * n.width, "parameter all-gather", n.group_of(u));
}

void emit_departure(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool first,
                    bool last) {
  if (!n.offloads || (n.stage < 2 && !last)) return;
  const std::int64_t shard = n.shard(u);
  b.copy(LinkKind::host, false, shard * n.width, "gradients to the host");
  if (n.stage < 2 || first) return;
  // The thread that starts kernels adds what has arrived: both sums are read, one is written. It
  // waits for a unit's copies where they want more than the two places to land in.
  constexpr std::int64_t kLandings = 2;
  b.host_optimizer(HostOptimizer::native, checked_mul(3 * shard, n.width),
                   shard <= kLandings * kBucket);
}

void emit_delayed_update(ProgramBuilder& b, const Native& n) {
  if (!n.offloads || !n.delayed) return;
  std::int64_t owned = 0, in_file = 0, shards = 0;
  for (const NativeUnit& u : n.layout.units()) {
    if (u.frozen) continue;
    owned += n.shard(u) * u.count;
    in_file += checked_mul(unit_in_file(n, u), u.count);
    shards += checked_mul(shard_in_file(n, u), u.count);
  }
  if (n.parameters_on_nvme && !n.plan.precision.master)
    b.fetch_ahead(LinkKind::nvme, shards, kShardsFromFile);
  update(b, n, owned, in_file, !n.parameters_on_host);
  if (n.parameters_on_nvme) b.store_ahead(LinkKind::nvme, shards, kShardsToFile);
  if (n.parameters_on_host) return;
  b.copy(LinkKind::host, true, owned * n.width, "updated parameters from the host");
  if (n.stage == 1 || n.stage == 2)
    for (const NativeUnit& u : n.layout.units())
      if (!u.frozen)
        b.collective(Collective::all_gather, checked_mul(n.padded(u) * n.width, u.count),
                     "parameter all-gather", u.count, n.group_of(u));
}

}  // namespace shardplan
