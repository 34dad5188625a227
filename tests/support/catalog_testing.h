// The built-in GPUs and machines, read once.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "hardware/catalog.h"
#include "load/hardware.h"

namespace shardplan {

inline const HardwareCatalog& hardware_catalog() {
  static const HardwareCatalog kCatalog = load_hardware_catalog();
  return kCatalog;
}

/// Throws for a name that is not in the catalogue.
inline const Gpu& catalog_gpu(std::string_view name) {
  const CatalogGpu* found = find_gpu(hardware_catalog(), name);
  if (found == nullptr) throw std::runtime_error("no GPU " + std::string(name));
  return found->gpu;
}

}  // namespace shardplan
