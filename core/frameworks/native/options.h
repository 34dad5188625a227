// Options of our own engine (validator/).
#pragma once

#include <cstdint>

#include "plan/offload_device.h"

namespace shardplan {

/// The device that it runs on decides its workspace.
enum class NativeDevice : std::uint8_t { cuda, host };

struct NativeOptions {
  std::int64_t zero_stage = 0;
  NativeDevice device = NativeDevice::cuda;
  OffloadDevice offload_optimizer = OffloadDevice::none;
  OffloadDevice offload_param = OffloadDevice::none;
  /// Parameters on NVMe are read by the GPU (GPUDirect Storage), past the host's memory.
  bool use_gds = false;
  /// A step's update is made beside the next step, which does not have it yet (ZeRO-Offload).
  bool delayed_update = false;
  /// Rows that an expert takes of each rank, over an even share; the rest are dropped. 0: every row
  /// is taken.
  double capacity_factor = 0;
  /// Experts of a layer that get no row of a micro-batch, in the mean: the engine starts nothing
  /// for them. Its records count them (`measured.idle_experts`).
  double idle_experts = 0;

  /// Updated there, wherever they are kept.
  bool states_on_host() const { return offload_optimizer != OffloadDevice::none; }
  bool states_on_nvme() const { return offload_optimizer == OffloadDevice::nvme; }
  bool parameters_on_host() const { return offload_param != OffloadDevice::none; }
};

}  // namespace shardplan
