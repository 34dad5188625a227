// The ZeRO stages. docs/explanation/memory.md derives what each allocates; section numbers in the
// sources' comments are its.
#pragma once

#include "frameworks/deepspeed/engine.h"
#include "frameworks/deepspeed/layout.h"
#include "lowering/segments.h"
#include "program/program.h"

namespace shardplan {

Program lower_stage0(const Model& model, const Plan& plan, const ModelRun& run,
                     const Engine& engine);
Program lower_stage12(const Model& model, const Plan& plan, const ModelRun& run,
                      const Engine& engine, std::int64_t rank);
Program lower_bf16_optimizer(const Model& model, const Plan& plan, const ModelRun& run,
                             const Engine& engine);
Program lower_stage3(const Model& model, const Plan& plan, const ModelRun& run,
                     const Engine& engine);

/// What every engine has on the GPU from the start: cuBLAS workspaces and the batch.
void add_common_residents(ProgramBuilder& b, const Plan& plan);
/// What a pipeline stage receives activations and gradients in, and its own shared tables.
void add_pipe_buffers(ProgramBuilder& b, const ModelRun& run, const Engine& engine);

/// Host memory of optimizer offload at stages 1 and 2, `states` bytes of optimizer states included
/// (deepspeed/runtime/zero/stage_1_and_2.py).
HostMemory offloaded_stage12(const Plan& plan, const Engine& e,
                             const std::vector<std::int64_t>& partitions, std::int64_t touched,
                             std::int64_t states);

/// Host and NVMe memory of the offloads of stage 3; `shard` and `frozen` in elements, `sub_group`
/// the largest optimizer sub-group, `states` in bytes.
HostMemory offloaded_stage3(const Model& model, const Plan& plan, const Engine& engine,
                            const ShardLayout& layout, std::int64_t sub_group, std::int64_t states);

/// The step of an optimizer on the host, over `elements` of this rank: gradients are scaled there,
/// CPUAdam updates, and masters are cast (stage_1_and_2.py and stage3.py, step).
void update_on_host(ProgramBuilder& b, const Plan& plan, const Engine& e, std::int64_t elements);

}  // namespace shardplan
