// What Megatron-LM's fine-grained activation offloading sends to the host under a plan
// (plan/sent_modules.h), as megatron/core/pipeline_parallel/fine_grained_activation_offload.py of
// d98e8a6 does it. Read, and not measured.
#pragma once

#include <cstdint>
#include <optional>

#include "lowering/segments.h"
#include "parallel/problem.h"
#include "plan/plan.h"
#include "plan/sent_modules.h"

namespace shardplan {

/// Inactive under another framework, and outside of training.
SentModules sent_modules(const Plan& plan);

/// Why Megatron-LM refuses `plan`'s modules, or they cannot be estimated; nothing where they can.
std::optional<DivisionProblem> sent_modules_problem(const Plan& plan);
std::optional<DivisionProblem> sent_modules_problem(const Model& model, const Plan& plan);

/// Pinned bytes of the host for each GPU, of the stage that takes most: buffers of all layers,
/// since the first iteration sends the last one's too, for each micro-batch between its passes.
HostMemory sent_on_host(const Plan& plan, const ModelRun& run);

}  // namespace shardplan
