// What this machine has: GPUs that NVIDIA's driver lists, host memory and NVMe, as Linux tells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hardware/catalog.h"
#include "json/document.h"

namespace shardplan::gui {

struct DetectedMachine {
  std::vector<std::string> gpus;  ///< names as the driver has them: "NVIDIA A100-SXM4-40GB"
  std::int64_t host_memory = 0;   ///< bytes; 0: not known
  std::int64_t nvme = 0;          ///< bytes of all NVMe namespaces together
};

/// Reads /proc and /sys below `root`.
DetectedMachine detect_machine(const std::string& root = "/");

/// The "cluster" of a job on that machine, or null when its GPUs are none or not in the catalogue,
/// or of several kinds.
Json cluster_of(const DetectedMachine& machine, const HardwareCatalog& catalog);

}  // namespace shardplan::gui
