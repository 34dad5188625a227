#include "estimate/device_memory.h"

#include <algorithm>
#include <array>
#include <utility>

#include "estimate/assemble.h"
#include "estimate/estimate.h"
#include "estimate/time.h"
#include "frameworks/registry.h"
#include "parallel/communicators.h"
#include "timing/part_factors.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// What bounds one plan's memory.
struct Margins {
  Margin own;
  const ScarceMargin& scarce;
  /// Whether a step that surely gets by with less than it would cache surely runs. With tensors on
  /// the host it may not: the one such job that was measured died (docs/evidence/accuracy.md).
  bool gives_back_surely = true;
};

Margins margins_of(const Plan& plan, const Calibration& calibration, const Program& program) {
  return {margin_of(plan, calibration, program), calibration.scarce, program.host.pinned == 0};
}

std::int64_t scaled(std::int64_t bytes, double factor) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
}

/// Bytes that the process leaves to the allocator; at least those that it leaves in the worst case.
struct AllocatorLimit {
  std::int64_t point = 0, upper = 0;

  /// For the upper bound everything takes more, within the same limit.
  std::int64_t shrunk(std::int64_t held, const Margins& margins) const {
    return scaled(upper - held, 1 / std::max(margins.own.allocated, margins.scarce.most));
  }
  /// For the lower bound it takes less.
  std::int64_t widened(const Margins& margins) const {
    return scaled(point, 1 / margins.scarce.least);
  }
};

AllocatorLimit limit_beside(const ProcessMemory& process, const Plan& plan) {
  const std::int64_t usable = plan.cluster.gpu.usable.count();
  return {usable - process.point(), usable - process.upper};
}

/// The allocator with memory to spare; where that is more than `limit`, with no more than that: it
/// gives cached segments back before it fails. docs/explanation/allocator.md, "Under pressure".
std::int64_t simulated(const ReservedRuns& runs, std::int64_t limit) {
  const ReservedProfile& spare = runs.spare();
  if (spare.reserved <= limit || limit <= 0) return spare.reserved;
  if (spare.requested > limit) return spare.reserved;  // it would fail, however it cuts its blocks
  const ReservedProfile tight = runs.within(limit);
  return tight.out_of_memory ? spare.reserved : tight.reserved;
}

/// `held`: what chance may keep alive on top.
Range simulated_reserved(const ReservedRuns& runs, std::int64_t held, const Margins& margins,
                         const AllocatorLimit& limit) {
  Range range;
  range.point = simulated(runs, limit.point);
  const std::int64_t most = scaled(runs.most(), margins.own.reserved) + held;
  range.upper = most;
  if (most > limit.upper && limit.upper > 0 && margins.gives_back_surely) {
    const std::int64_t shrunk = limit.shrunk(held, margins);
    if (simulated(runs, shrunk) <= shrunk) {
      // Caches fill what there is: they leave the process what it needs at most.
      range.upper = limit.upper;
      range.point = std::min(range.point, limit.upper);
    }
  }
  range.upper = std::max(range.upper, range.point);
  range.least = std::min(range.point, scaled(runs.least(), margins.own.least));
  // Where the process has enough, what it would do with a little more changes nothing.
  if (range.point > limit.point && limit.point > 0) {
    const std::int64_t widened = limit.widened(margins);
    const std::int64_t scarce = simulated(runs, widened);
    if (scarce <= widened) {  // a little more than there is would do, and chance may give it
      range.least = std::min(range.least, limit.point);
      range.point = std::min(range.point, std::max(scarce, limit.point + 1));
    } else {  // not even with a little more
      range.least = std::max(range.least, limit.point + 1);
    }
  }
  return range;
}

/// Without simulation: with room to spare the allocator caches freely.
Range reserved_by_ratio(std::int64_t allocated, const Calibration& c, const AllocatorLimit& limit) {
  return {std::clamp(limit.point, allocated, scaled(allocated, c.reserved_ratio)),
          std::clamp(limit.upper, scaled(allocated, c.reserved_ratio),
                     scaled(allocated, c.reserved_ratio_upper))};
}

/// Whether a process loads PyTorch's fused attention: a step has none in fp32, nor where scores are
/// kept or the package flash-attn is called (chosen with its seven runs in view). Seen under plain
/// PyTorch, DDP and FSDP; of DeepSpeed's and Megatron-LM's processes, which load kernels of their
/// own, no run says so.
bool loads_fused_attention(const Plan& plan) {
  const FrameworkTraits& framework = traits_of(plan);
  return plan.workload.kind != WorkKind::train || framework.has_zero ||
         framework.split == SplitStyle::megatron ||
         (plan.attention == AttentionKind::sdpa && !plan.calls_flash_attn() &&
          size_of(plan.precision.compute) < 4);
}

/// Of the step's own communicators: `rank` opens them.
ProcessMemory process_memory(const Plan& plan, const ProcessOverhead& overhead, std::int64_t rank) {
  const std::vector<Communicator> list = communicators(plan, rank);
  ProcessMemory process;
  process.contexts =
      overhead.context_bytes + foreign_contexts(plan) * overhead.foreign_context_bytes;
  process.nccl = nccl_bytes(list, overhead.nccl);
  process.upper = scaled(process.point(), overhead.upper);
  if (traits_of(plan).connects_more)
    process.upper =
        std::max(process.upper, process.contexts + nccl_bytes_at_most(list, overhead.nccl));
  if (!loads_fused_attention(plan)) process.contexts -= overhead.attention_bytes;
  return process;
}

/// The GPU's page tables of pinned host memory: 8 bytes for each page of 4 KiB. Found in the
/// records of 40 runs with states there, 30 of which are within 5 MiB and all within 18; of two
/// later ones one is 22 MiB too high. No source says so. Our engine's ranks of a node are threads
/// of one process, and what one of them registers every GPU of the process maps (CUDA's unified
/// addresses): ten later records say so within 3 MiB.
std::int64_t page_table_bytes(const Plan& plan, const HostMemory& host) {
  constexpr std::int64_t kPage = 4096, kEntry = 8;
  const std::int64_t ranks = traits_of(plan).is_own_engine ? plan.cluster.gpus_per_node : 1;
  return ranks * ceil_div(host.pinned, kPage) * kEntry;
}

/// Of an engine's process: the context, and communicators where it is over several GPUs. It stays
/// while the engine sleeps, and is no part of the share of the GPU that the engine is told to take
/// (vllm/v1/worker/gpu_worker.py, init_device: the first snapshot is taken behind both).
ProcessMemory engine_process(const Plan& plan, const Calibration& calibration,
                             std::int64_t degree) {
  Plan own = plan;
  own.framework = {};
  own.framework.kind = default_framework(1);
  own.trainer = &default_trainer();
  own.parallel = {};
  own.parallel.tensor = degree;
  own.cluster.gpus_per_node = std::min(degree, plan.cluster.gpus_per_node);
  own.cluster.nodes = ceil_div(degree, own.cluster.gpus_per_node);
  return process_memory(own, calibration.overhead_of(own.framework.kind), 0);
}

/// Segments stay reserved from the moments in which the host was furthest ahead, and so was it
/// quickest: in a tenth of 168 runs the shortest forward pass was issued in 0.74 of the median's
/// time (`host_steps` of their records, after the warm-up). Of the host that the times are of.
constexpr double kQuickHost = 0.75;

Pace pace_for(const Program& program, const Plan& plan, TimeRates rates) {
  if (!waits_for_streams(program)) return {};
  if (!knows_time(plan)) return host_ahead(program);
  rates.host.usual = {};
  slow_host(rates.host, kQuickHost);
  return pace_of(program, plan, rates);
}

Source source_of(Category category, const BreakdownSources& sources) {
  switch (category) {
    case Category::parameters:
    case Category::gradients:
    case Category::master_parameters:
    case Category::kv_cache:
      return sources.tensors;
    case Category::optimizer_states:
      return weaker(sources.optimizer, sources.tensors);
    case Category::cuda_context:
    case Category::nccl:
      return sources.process;
    case Category::fragmentation:
      return sources.fragmentation;
    default:
      return Source::modelled;
  }
}

}  // namespace

ProcessMemory process_memory(const Plan& plan, const Calibration& calibration,
                             const Program& program) {
  ProcessMemory process =
      process_memory(plan, calibration.overhead_of(plan.framework.kind), program.rank);
  const ProcessMemory own = process;
  const auto add = [&](const ProcessMemory& beside, std::int64_t count) {
    process.contexts = checked_add(process.contexts, checked_mul(beside.contexts, count));
    process.nccl = checked_add(process.nccl, checked_mul(beside.nccl, count));
    process.upper = checked_add(process.upper, checked_mul(beside.upper, count));
  };
  add(own, program.processes_beside);
  for (const std::int64_t degree : program.engines_beside)
    add(engine_process(plan, calibration, degree), 1);
  process.nccl += program.communicator_bytes;
  const std::int64_t pages = page_table_bytes(plan, program.host);
  process.contexts += pages;
  process.upper += program.communicator_bytes + pages + program.library_at_most;
  return process;
}

Margin margin_of(const Plan& plan, const Calibration& calibration, const Program& program) {
  Margin margin = margin_of(calibration.margins, traits_of(plan).name, regime_of(plan, program));
  margin.reserved *= program.most_over * program.most_workspaces_over;
  margin.allocated *= program.most_over;
  return margin;
}

Range reserved_memory(const Plan& plan, const Calibration& calibration, const Program& program,
                      const ProcessMemory& process, std::int64_t allocated,
                      const ReservedRuns* runs) {
  if (program.one_block) return {allocated, allocated};
  const AllocatorLimit limit = limit_beside(process, plan);
  if (runs == nullptr) return reserved_by_ratio(allocated, calibration, limit);
  Range range = simulated_reserved(*runs, program.held_at_most,
                                   margins_of(plan, calibration, program), limit);
  // Caches can be given back and cut otherwise; what is live at once cannot.
  range.least = std::max(range.least, std::min(range.point, allocated));
  return range;
}

namespace {

/// What reserved_memory() asks a program's runs about.
std::array<std::int64_t, 3> limits_of(const Program& program, const Plan& plan,
                                      const Calibration& calibration) {
  const AllocatorLimit limit = limit_beside(process_memory(plan, calibration, program), plan);
  const Margins margins = margins_of(plan, calibration, program);
  return {limit.point, limit.shrunk(program.held_at_most, margins), limit.widened(margins)};
}

PacedProgram paced(const Program& program, const Plan& plan, const Calibration& calibration) {
  return {&program, pace_for(program, plan, calibration.time), traits_of(plan).places_states};
}

}  // namespace

std::vector<ReservedRuns> allocator_runs(const Plan& plan, const Calibration& calibration,
                                         std::span<const Program* const> programs,
                                         const ForEach& each) {
  std::vector<std::int64_t> limits;
  std::vector<PacedProgram> all;
  for (const Program* program : programs) {
    for (const std::int64_t limit : limits_of(*program, plan, calibration)) limits.push_back(limit);
    all.push_back(paced(*program, plan, calibration));
  }
  return reserved_runs(all, std::move(limits), each);
}

void add_steps(ReservedRuns& runs, const Plan& plan, const Calibration& calibration,
               std::span<const Program* const> programs, std::span<const std::size_t> order) {
  std::vector<PacedProgram> all;
  for (const Program* program : programs) all.push_back(paced(*program, plan, calibration));
  runs.add_steps(all, order, limits_of(*programs.back(), plan, calibration));
}

std::int64_t least_device_upper(const Plan& plan, const Calibration& calibration,
                                std::int64_t allocated) {
  // simulated_reserved(): what it bounds by is never below the live bytes, with the same ratio.
  const ProcessOverhead& overhead = calibration.overhead_of(plan.framework.kind);
  // The first stage of a pipeline has the fewest neighbours, and no loss.
  return scaled(allocated, least_ratio(calibration.margins, traits_of(plan).name)) +
         process_memory(plan, overhead, 0).upper;
}

std::vector<CategoryLine> breakdown_of(const MemoryProfile& memory, const ProcessMemory& process,
                                       std::int64_t fragmentation,
                                       const BreakdownSources& sources) {
  std::vector<CategoryLine> lines;
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    CategoryLine line;
    line.category = static_cast<Category>(c);
    line.resident = memory.at_start[c];
    line.at_peak = memory.at_peak[c];
    if (line.category == Category::gradients)
      line.resident = std::max(memory.at_start[c], memory.gradients_whole);
    if (line.category == Category::fragmentation) line.at_peak = line.resident = fragmentation;
    if (line.category == Category::cuda_context) line.at_peak = line.resident = process.contexts;
    if (line.category == Category::nccl) line.at_peak = line.resident = process.nccl;
    line.source = source_of(line.category, sources);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace shardplan
