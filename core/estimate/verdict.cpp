#include "estimate/verdict.h"

namespace shardplan {
namespace {

/// The operating system and the processes themselves take the rest of a host's memory.
constexpr double kHostShare = 0.95;

Fit fit_of(const Range& needed, std::int64_t available) {
  if (needed.upper <= available) return Fit::fits;
  return needed.least <= available ? Fit::tight : Fit::does_not_fit;
}

/// `usable`: bytes out of `capacity`.
ResourceVerdict exact_verdict(std::int64_t needed, std::optional<std::int64_t> capacity,
                              double usable) {
  if (!capacity) return {needed == 0 ? Fit::fits : Fit::unknown, needed, std::nullopt};
  const auto available = static_cast<std::int64_t>(static_cast<double>(*capacity) * usable);
  return {fit_of({needed, needed}, available), needed, capacity};
}

bool good(const ResourceVerdict& v) {
  return v.fit == Fit::fits || v.fit == Fit::unknown;
}

}  // namespace

std::string_view name_of(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return "fits";
    case Fit::tight:
      return "tight";
    case Fit::does_not_fit:
      return "does_not_fit";
    case Fit::unknown:
      return "unknown";
  }
  return "";
}

bool probably_fits(const Verdict& v) {
  return v.gpu.needed <= v.gpu.available && good(v.host) && good(v.nvme);
}

Verdict verdict_of(const Range& device, const HostMemory& host, const Cluster& cluster) {
  const auto count_of = [](const Bytes& bytes) { return bytes.count(); };
  std::optional<std::int64_t> host_bytes, nvme_bytes;
  if (cluster.host_memory) host_bytes = count_of(*cluster.host_memory);
  if (cluster.nvme) nvme_bytes = count_of(cluster.nvme->capacity);

  Verdict v;
  const std::int64_t usable = cluster.gpu.usable.count();
  v.gpu = {fit_of(device, usable), device.point, usable};
  v.headroom_bytes = usable - device.point;
  v.host = exact_verdict(host.total(), host_bytes, kHostShare);
  v.nvme = exact_verdict(host.nvme, nvme_bytes, 1);
  v.fits = good(v.gpu) && good(v.host) && good(v.nvme);
  v.limited_by = !good(v.gpu) ? "gpu" : !good(v.host) ? "host" : !good(v.nvme) ? "nvme" : "";
  return v;
}

}  // namespace shardplan
