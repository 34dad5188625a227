// The host's memory of one rank: pinned and pageable, each one block that an arena divides.
#pragma once

#include <memory>

#include "device/backend.h"
#include "engine/runtime.h"
#include "memory/host_pages.h"

namespace shardplan::validator {

/// Bytes that a rank takes of its host.
struct HostBytes {
  std::int64_t pinned = 0, pageable = 0;
  std::int64_t nvme = 0;  ///< in a file
  /// Of memory.
  std::int64_t total() const { return pinned + pageable; }
};

/// Throws OutOfMemory when `ranks` of this host cannot take as much each: more than `limit` (0:
/// what the host has) bytes a rank, or than the kernel and the control group leave.
void check_host_memory(const HostBytes& each, int ranks, std::int64_t limit);

class RankHostMemory {
 public:
  /// Throws OutOfMemory for memory that is not there, DeviceError for memory that is not pinned,
  /// StorageError for a file that cannot be made where `storage` says. Without bytes of NVMe there
  /// is none.
  /// `direct`: the file is also read to and written from the device's memory.
  RankHostMemory(Backend& device, HostCompute& compute, const HostBytes& bytes,
                 const StorageOptions& storage = {}, bool direct = false);
  ~RankHostMemory();
  RankHostMemory(const RankHostMemory&) = delete;
  RankHostMemory& operator=(const RankHostMemory&) = delete;

  HostSide* side() { return &side_; }
  /// The most that was in use.
  HostBytes used() const { return {pinned_.extent(), pageable_.extent(), nvme_.extent()}; }
  /// Null: nothing is on NVMe.
  Swap* swap() { return swap_.get(); }
  /// Null: there is no way past the host's memory.
  Swap* direct() { return direct_.get(); }

 private:
  Backend& device_;
  HostPages pinned_pages_, pageable_pages_;
  Arena pinned_, pageable_, nvme_;
  std::unique_ptr<Swap> swap_;  ///< ends before the memory that it reads to and writes from
  std::unique_ptr<Swap> direct_;
  HostSide side_;
};

}  // namespace shardplan::validator
