// What other programs' rules say of the same job: bytes on one GPU. Each is the published formula,
// applied to the jobs that it is made for. They answer for model states alone; that is what their
// users compare with a GPU's memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// 16 bytes a parameter (2 + 2 + 4 + 4 + 4: Rajbhandari et al., ZeRO, section 3.1), for every job;
/// divided by the GPUs where parameters, gradients and states are all sharded.
std::optional<std::int64_t> flat_sixteen_bytes(const Model& model, const Plan& plan);

/// DeepSpeed's estimate_zero2_model_states_mem_needs (deepspeed/runtime/zero/stage_1_and_2.py):
/// 2Ψ + 18Ψ/N, or 2Ψ when the optimizer is offloaded. For one GPU, and DeepSpeed's stages 1 and 2.
std::optional<std::int64_t> deepspeed_zero2_estimate(const Model& model, const Plan& plan);

/// DeepSpeed's estimate_zero3_model_states_mem_needs (deepspeed/runtime/zero/stage3.py):
/// 4·L + 18Ψ/N, L the parameters of the largest module without its children; 4·L + 2Ψ/N when the
/// optimizer is offloaded, and 4·L when the parameters are too. For DeepSpeed's stage 3 and for
/// FSDP2, which shards the same.
std::optional<std::int64_t> deepspeed_zero3_estimate(const Model& model, const Plan& plan);

/// accelerate estimate-memory (accelerate/commands/estimate.py), the column "Training using Adam":
/// the largest of its four phases, 16Ψ for float32 and 8Ψ for 16-bit types. It knows no sharding:
/// for one GPU and for DDP.
std::optional<std::int64_t> accelerate_estimate(const Model& model, const Plan& plan);

struct PeerRule {
  std::string_view name;
  std::optional<std::int64_t> (*estimate)(const Model&, const Plan&);
};

inline constexpr std::array kPeerRules{
    PeerRule{"16 bytes a parameter", flat_sixteen_bytes},
    PeerRule{"DeepSpeed estimate_zero2", deepspeed_zero2_estimate},
    PeerRule{"DeepSpeed estimate_zero3", deepspeed_zero3_estimate},
    PeerRule{"accelerate estimate-memory", accelerate_estimate},
};

}  // namespace shardplan
