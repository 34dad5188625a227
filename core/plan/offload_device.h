// Where a framework keeps states or parameters that it does not keep on the GPU.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardplan {

enum class OffloadDevice : std::uint8_t { none, cpu, nvme };

/// The name used in jobs and in ds_config files.
constexpr std::string_view name_of(OffloadDevice device) {
  return device == OffloadDevice::nvme ? "nvme" : device == OffloadDevice::cpu ? "cpu" : "none";
}

}  // namespace shardplan
