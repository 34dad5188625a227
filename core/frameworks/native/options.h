// Options of our own engine (validator/).
#pragma once

#include <cstdint>

namespace shardplan {

/// The device that it runs on decides its workspace.
enum class NativeDevice : std::uint8_t { cuda, host };

struct NativeOptions {
  std::int64_t zero_stage = 0;
  NativeDevice device = NativeDevice::cuda;
};

}  // namespace shardplan
