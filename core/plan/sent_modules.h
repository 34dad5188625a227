// Megatron-LM's fine-grained activation offloading: what autograd keeps inside of chosen modules of
// a layer waits on the host (megatron/core/pipeline_parallel/fine_grained_activation_offload.py).
#pragma once

#include <cstdint>

namespace shardplan {

/// Modules of a layer, by the names of --offload-modules.
enum class SentModule : std::uint8_t {
  none,
  attn_norm,   ///< empty where Transformer Engine has the norm in the linear behind it
  qkv_linear,  ///< with the norm before it
  core_attn,
  attn_proj,
  mlp_norm,  ///< empty before dense feed-forwards, as attn_norm
};

constexpr std::uint32_t bit_of(SentModule module) {
  return 1U << static_cast<unsigned>(module);
}

struct SentModules {
  bool active = false;          ///< layers before or after this one send something
  std::uint32_t modules = 0;    ///< a bit for each SentModule
  std::int64_t least_size = 0;  ///< elements: smaller tensors stay
};

}  // namespace shardplan
