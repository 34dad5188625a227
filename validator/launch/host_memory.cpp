#include "launch/host_memory.h"

#include <fmt/format.h>

#include "base/format.h"

namespace shardplan::validator {

namespace {

std::unique_ptr<Swap> direct_swap(const Swap& swap, StorageOptions options, Backend& device) {
  options.path = IoPath::cufile;
  return std::make_unique<Swap>(options, swap.shared_file(), &device);
}

}  // namespace

void check_host_memory(const HostBytes& each, int ranks, std::int64_t limit) {
  if (limit > 0 && each.total() > limit)
    throw OutOfMemory(
        fmt::format("out of memory: each rank needs {} of its host ({} pinned, {} pageable), and "
                    "{} are allowed",
                    format_bytes(each.total()), format_bytes(each.pinned),
                    format_bytes(each.pageable), format_bytes(limit)));
  const std::int64_t all = checked_mul(each.total(), ranks);
  const std::int64_t there = host_bytes_available();
  if (all <= there) return;
  throw OutOfMemory(fmt::format(
      "out of memory: {} rank{} of this host need {} of its memory ({} pinned, {} pageable each), "
      "and {} are available",
      ranks, ranks == 1 ? "" : "s", format_bytes(all), format_bytes(each.pinned),
      format_bytes(each.pageable), format_bytes(there)));
}

RankHostMemory::RankHostMemory(Backend& device, HostCompute& compute, const HostBytes& bytes,
                               const StorageOptions& storage, bool direct)
    : device_(device),
      pinned_pages_(bytes.pinned, "gradients and parameters of the host"),
      pageable_pages_(bytes.pageable, "masters and moments of the host"),
      pinned_(pinned_pages_.address(), bytes.pinned),
      pageable_(pageable_pages_.address(), bytes.pageable),
      nvme_(0, bytes.nvme),
      swap_(bytes.nvme > 0 ? std::make_unique<Swap>(storage, bytes.nvme) : nullptr),
      direct_(direct && swap_ ? direct_swap(*swap_, storage, device) : nullptr),
      side_{compute, pinned_, pageable_, nvme_, swap_.get(), direct_.get()} {
  if (bytes.pinned == 0) return;
  // Pinned as they are: whoever writes them first is to be a thread that reads them.
  compute.zero({pinned_pages_.address(), DType::i8, Shape{bytes.pinned}});
  device_.pin(pinned_pages_.span());
}

RankHostMemory::~RankHostMemory() {
  if (pinned_pages_.bytes() > 0) device_.unpin(pinned_pages_.span());
}

}  // namespace shardplan::validator
