// Which framework runs a plan, and the options of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frameworks/ddp/options.h"
#include "frameworks/deepspeed/options.h"
#include "frameworks/fsdp1/options.h"
#include "frameworks/fsdp2/options.h"
#include "frameworks/megatron/options.h"
#include "frameworks/native/options.h"

namespace shardplan {

/// In the order of the registry (frameworks/registry.cpp).
enum class FrameworkKind : std::uint8_t { single, ddp, fsdp2, deepspeed, native, megatron, fsdp1 };
inline constexpr std::size_t kFrameworkCount = static_cast<std::size_t>(FrameworkKind::fsdp1) + 1;

struct Framework {
  FrameworkKind kind = FrameworkKind::deepspeed;
  DdpOptions ddp;
  Fsdp1Options fsdp1;
  Fsdp2Options fsdp2;
  DeepSpeedOptions deepspeed;
  NativeOptions native;
  MegatronOptions megatron;
};

}  // namespace shardplan
