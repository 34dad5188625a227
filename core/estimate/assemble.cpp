#include "estimate/assemble.h"

#include <algorithm>

#include "base/checked.h"
#include "estimate/confirmed.h"
#include "estimate/device_memory.h"
#include "frameworks/registry.h"
#include "lowering/graph_pool.h"

namespace shardplan {
namespace {

/// What of managed memory stays on the GPU beside `others`: the driver moves the rest to the host.
std::int64_t managed_on_gpu(const Plan& plan, const Program& program, std::int64_t others) {
  const std::int64_t room = plan.cluster.gpu.usable.count() - others;
  return std::clamp<std::int64_t>(room, 0, program.managed);
}

/// Where Dynamo cuts a model's graph it is not followed which blocks what crosses the cuts lies in,
/// nor where loading a divided model puts its weights.
bool follows_blocks(const Plan& plan) {
  const FrameworkTraits& traits = traits_of(plan);
  return traits.places_states && plan.parallel.tensor == 1 &&
         !(plan.compile && traits.graph_bytes(plan) > 0);
}

/// What is not split off a block counts as allocated. Weights that transformers quantizes are cut
/// off one block, which it asks for before (modeling_utils.py, caching_allocator_warmup): what that
/// leaves depends on the order of all their parts, which load_packed_model does not follow.
void add_rests(Estimate& e, const Plan& plan, const ReservedProfile& blocks) {
  const bool cut = quantization_of(plan.workload) != Quantization::none;
  const std::int64_t unknown = cut ? blocks.built_rests : 0;
  std::int64_t most = 0;
  for (std::size_t phase = 0; phase < kPhaseCount; ++phase) {
    e.phases[phase].peak += std::max<std::int64_t>(blocks.rests[phase].peak - unknown, 0);
    e.phases[phase].end += std::max<std::int64_t>(blocks.rests[phase].end - unknown, 0);
    most = std::max(most, e.phases[phase].peak);
  }
  e.allocated = {most, most};
}

/// What a run of this machine had beyond its estimate, another may have.
void raise_bounds(Estimate& e, double over) {
  for (Range* range : {&e.allocated, &e.reserved})
    range->upper =
        std::max(range->upper, static_cast<std::int64_t>(static_cast<double>(range->point) * over));
}

/// What the trainer calls the backward pass has the engine's update in it.
void take_step_into_backward(Estimate& e) {
  PhaseBytes& backward = e.phases[static_cast<std::size_t>(Phase::backward)];
  PhaseBytes& step = e.phases[static_cast<std::size_t>(Phase::step)];
  backward = {std::max(backward.peak, step.peak), step.end};
  step.peak = step.end;
  if (e.peak_phase == Phase::step) e.peak_phase = Phase::backward;
}

void add_device_memory(Estimate& e, const Plan& plan, const Calibration& calibration,
                       const Program& program, const MemoryProfile& memory,
                       const ReservedRuns* runs) {
  const ProcessMemory process = process_memory(plan, calibration, program);
  e.phases = memory.phases;
  e.peak_phase = memory.peak_phase;
  e.allocated = {memory.peak, memory.peak};
  e.reserved = reserved_memory(plan, calibration, program, process, memory.peak, runs);
  e.held_at_most = program.held_at_most;
  e.most_over = program.most_over;
  e.reserved_over = program.most_over * program.most_workspaces_over;
  if (runs != nullptr && !program.one_block) {
    e.margin = margin_of(plan, calibration, program);
    e.neighbours = {runs->spare().reserved, runs->most(), runs->least()};
  }
  if (runs != nullptr && program.counts_blocks && !program.one_block) {
    const ReservedProfile& blocks = runs->spare();
    e.phases = blocks.phases;
    e.allocated = {blocks.allocated, blocks.allocated};
  } else if (runs != nullptr && !program.one_block && follows_blocks(plan)) {
    add_rests(e, plan, runs->spare());
  }
  if (program.replays_graphs) {
    const Program beside = without_graph_pool(program);
    const MemoryProfile counted = simulate_memory(beside);
    e.phases = counted.phases;
    e.allocated = {counted.peak, counted.peak};
    if (runs != nullptr && follows_blocks(plan))
      add_rests(e, plan, simulate_reserved(beside, {}, nullptr));
  }
  if (traits_of(plan).has_zero && plan.trainer->engine_steps_in_backward)
    take_step_into_backward(e);
  if (calibration.anchor) raise_bounds(e, calibration.anchor->memory_over);
  // What is beside the allocator may be as much less than estimated as more.
  const double less = 2 - calibration.overhead_of(plan.framework.kind).upper;
  const Range others{
      e.reserved.point + process.point(), e.reserved.upper + process.upper,
      e.reserved.least + static_cast<std::int64_t>(static_cast<double>(process.point()) * less)};
  const std::int64_t managed = managed_on_gpu(plan, program, others.point);
  e.device = {others.point + managed, others.upper + managed_on_gpu(plan, program, others.upper),
              others.least + managed_on_gpu(plan, program, others.least)};
  const bool fitted = plan.cluster.gpu.arch == calibration.arch;
  const bool simulated = runs != nullptr || program.one_block;
  e.breakdown = breakdown_of(
      memory, process, e.reserved.point - memory.peak,
      {fitted ? Source::calibrated : Source::assumed,
       simulated ? Source::modelled : Source::calibrated, program.optimizer_source,
       program.most_over > 1 ? Source::modelled : tensors_source(plan, program.host, calibration)});
  e.breakdown[static_cast<std::size_t>(Category::optimizer_states)].at_peak += managed;
}

HostMemory times(const HostMemory& rank, std::int64_t ranks) {
  return {checked_mul(rank.pageable, ranks), checked_mul(rank.pinned, ranks),
          checked_mul(rank.nvme, ranks)};
}

/// `ranks`: of a node; one process has them all, each a thread of its own.
std::int64_t growth_of(const HostGrowth& host, const Program& program, std::int64_t ranks) {
  if (program.libraries == HostLibraries::untold) return 0;
  const bool attends = program.libraries == HostLibraries::attention;
  return (attends ? host.attention_bytes + checked_mul(ranks - 1, host.rank_bytes)
                  : host.products_bytes) +
         (program.reads_past_host ? host.direct_bytes : 0);
}

}  // namespace

Estimate assemble(const Plan& plan, const Calibration& calibration, const Program& program,
                  const MemoryProfile& memory, const ReservedRuns* runs, const TimeEstimate& time) {
  Estimate e;
  e.capacity_bytes = plan.cluster.gpu.capacity.count();
  e.usable_bytes = plan.cluster.gpu.usable.count();
  e.rank = program.rank;
  e.model_bytes = program.model_bytes;
  e.run = memory.run;
  add_device_memory(e, plan, calibration, program, memory, runs);
  e.host_per_node = times(program.host, plan.cluster.gpus_per_node);
  if (program.host.total() > 0)
    e.host_growth_of_process = growth_of(calibration.overhead_of(plan.framework.kind).host, program,
                                         plan.cluster.gpus_per_node);
  e.traffic = traffic_of(program, plan.cluster);
  e.time = time;
  add_error(e.time, plan, calibration);
  e.verdict = verdict_of(e.device, e.host_per_node, plan.cluster);
  return e;
}

}  // namespace shardplan
