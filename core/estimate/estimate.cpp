#include "estimate/estimate.h"

#include <algorithm>
#include <optional>

#include "estimate/assemble.h"
#include "estimate/detail.h"
#include "estimate/generation.h"
#include "estimate/ranks.h"
#include "lowering/lower.h"
#include "parallel/communicators.h"
#include "simulator/reserved.h"
#include "timing/collective_time.h"

namespace shardplan {
namespace {

std::int64_t scaled(std::int64_t bytes, double factor) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
}

/// The allocator with memory to spare; where that is more than `room`, with no more than that: it
/// gives cached segments back before it fails. docs/allocator.md, "Under pressure".
std::int64_t simulated(const Program& program, const ReservedProfile& spare, std::int64_t room) {
  if (spare.reserved <= room || room <= 0) return spare.reserved;
  if (spare.requested > room) return spare.reserved;  // it would fail, however it cuts its blocks
  AllocatorOptions options;
  options.limit = room;
  const ReservedProfile tight = simulate_reserved(program, options);
  return tight.out_of_memory ? spare.reserved : tight.reserved;
}

/// `spare`: the allocator with memory to spare. `room` and `room_upper`: what the GPU has beside
/// context and NCCL, and at least has.
Range simulated_reserved(const Program& program, const ReservedProfile& spare, double upper_ratio,
                         std::int64_t room, std::int64_t room_upper) {
  Range range;
  range.point = simulated(program, spare, room);
  // The bound: everything takes upper_ratio times as much, in the same room.
  const std::int64_t held = program.held_at_most;
  const std::int64_t most = scaled(spare.reserved, upper_ratio) + held;
  range.upper = most;
  if (most > room_upper && room_upper > 0) {
    const std::int64_t shrunk = scaled(room_upper - held, 1 / upper_ratio);
    if (simulated(program, spare, shrunk) <= shrunk) range.upper = room_upper;
  }
  range.upper = std::max(range.upper, range.point);
  return range;
}

/// Without simulation: with room to spare the allocator caches freely.
Range reserved_by_ratio(std::int64_t allocated, const Calibration& c, std::int64_t room,
                        std::int64_t room_upper) {
  return {std::clamp(room, allocated, scaled(allocated, c.reserved_ratio)),
          std::clamp(room_upper, scaled(allocated, c.reserved_ratio),
                     scaled(allocated, c.reserved_ratio_upper))};
}

/// Among the ranks that differ: the one whose peak is highest, and the one that computes most,
/// which the others of a pipeline wait for.
struct WorstRank {
  Program program;
  MemoryProfile memory;
  bool differ = false;
  std::optional<Program> slowest;  ///< where it is another one
  const Program& timed() const { return slowest ? *slowest : program; }
};

WorstRank worst_rank(const RankModel& share, const Plan& plan) {
  WorstRank worst;
  double most = 0;
  bool first = true;
  for (const std::int64_t rank : distinct_ranks(share.model(), plan)) {
    Program program = lower(share.model(), plan, share.run(), rank);
    MemoryProfile memory = simulate_memory(program);
    const double flops = plan.parallel.pipeline > 1 ? hardware_flops(program) : 0;
    worst.differ = worst.differ || (!first && memory.peak != worst.memory.peak);
    const bool fuller = first || memory.peak > worst.memory.peak;
    const bool slower = first || flops > most;
    if (slower) worst.slowest.reset();
    if (slower && !fuller) worst.slowest = std::move(program);
    if (fuller) {
      if (!slower && !worst.slowest) worst.slowest = std::move(worst.program);
      worst.program = std::move(program);
      worst.memory = memory;
    }
    most = std::max(most, flops);
    first = false;
  }
  return worst;
}

/// What the process of one rank has of its GPU beside the allocator's memory.
struct Outside {
  std::int64_t contexts = 0, nccl = 0;
  std::int64_t upper = 0;  ///< of both
  std::int64_t point() const { return contexts + nccl; }
};

Outside outside_of(const Plan& plan, const ProcessOverhead& overhead, std::int64_t rank) {
  const std::vector<Communicator> list = communicators(plan, rank);
  Outside outside;
  outside.contexts =
      overhead.context_bytes + foreign_contexts(plan) * overhead.foreign_context_bytes;
  outside.nccl = nccl_bytes(list, overhead.nccl);
  outside.upper = scaled(outside.point(), overhead.upper);
  // A program in PyTorch may connect more beside its step; our own engine does not.
  if (plan.framework.kind != FrameworkKind::native)
    outside.upper =
        std::max(outside.upper, outside.contexts + nccl_bytes_at_most(list, overhead.nccl));
  return outside;
}

/// By how much a real run may pass the simulated allocator, at most.
double upper_ratio_of(const Plan& plan, const Calibration& c) {
  return plan.framework.kind == FrameworkKind::deepspeed ? c.deepspeed_upper : c.simulated_upper;
}

Source source_of(Category category, Source calibration, Source fragmentation) {
  switch (category) {
    case Category::parameters:
    case Category::gradients:
    case Category::master_parameters:
    case Category::optimizer_states:
    case Category::kv_cache:
      return Source::exact;
    case Category::cuda_context:
    case Category::nccl:
      return calibration;
    case Category::fragmentation:
      return fragmentation;
    default:
      return Source::modelled;
  }
}

void add_breakdown(Estimate& e, const MemoryProfile& memory, std::int64_t fragmentation,
                   const Outside& outside, Source calibration, Source of_fragmentation) {
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    CategoryLine line;
    line.category = static_cast<Category>(c);
    line.resident = memory.at_start[c];
    line.at_peak = memory.at_peak[c];
    if (line.category == Category::gradients)
      line.resident = std::max(memory.at_start[c], memory.gradients_whole);
    if (line.category == Category::fragmentation) line.at_peak = line.resident = fragmentation;
    if (line.category == Category::cuda_context) line.at_peak = line.resident = outside.contexts;
    if (line.category == Category::nccl) line.at_peak = line.resident = outside.nccl;
    line.source = source_of(line.category, calibration, of_fragmentation);
    e.breakdown.push_back(line);
  }
}

void add_traffic(Estimate& e, const Program& program, const Cluster& cluster) {
  for_each_event(program, [&](const Event& event, std::int64_t times) {
    GroupShape shape = program.groups[static_cast<std::size_t>(event.group)];
    if (shape.ranks == 0) shape = {cluster.world(), cluster.nodes};
    const bool collective = event.kind == Event::Kind::collective;
    if (!collective && event.kind != Event::Kind::copy) return;
    const LinkKind link = collective ? LinkKind::gpu : event.link;
    auto line = std::find_if(e.traffic.begin(), e.traffic.end(), [&](const TrafficLine& t) {
      return t.what == event.what && t.link == link;
    });
    if (line == e.traffic.end()) line = e.traffic.insert(line, {event.what, link});
    const std::int64_t payload = checked_mul(event.bytes, times);
    line->payload_bytes = checked_add(line->payload_bytes, payload);
    line->bytes_per_step = checked_add(
        line->bytes_per_step,
        collective ? checked_mul(bytes_sent(event.collective, event.bytes, shape.ranks), times)
                   : payload);
    if (collective)
      line->bytes_between_nodes = checked_add(
          line->bytes_between_nodes,
          checked_mul(bytes_between_nodes(event.collective, event.bytes, shape), times));
    line->count = checked_add(line->count, checked_mul(event.count, times));
  });
}

Fit fit_of(std::int64_t point, std::int64_t upper, std::int64_t available) {
  if (upper <= available) return Fit::fits;
  return point <= available ? Fit::tight : Fit::does_not_fit;
}

void add_verdict(Estimate& e, const Plan& plan) {
  Verdict& v = e.verdict;
  v.gpu = {fit_of(e.device.point, e.device.upper, e.usable_bytes), e.device.point, e.usable_bytes};
  v.headroom_bytes = e.usable_bytes - e.device.point;
  // The operating system and the processes themselves take part of the host's memory.
  constexpr double kHostShare = 0.95;
  const std::int64_t host = e.host_per_node.total();
  v.host = {host == 0 ? Fit::fits : Fit::unknown, host, std::nullopt};
  if (plan.cluster.host_memory) {
    const std::int64_t available = scaled(plan.cluster.host_memory->count(), kHostShare);
    v.host = {fit_of(host, host, available), host, plan.cluster.host_memory->count()};
  }
  const std::int64_t nvme = e.host_per_node.nvme;
  v.nvme = {nvme == 0 ? Fit::fits : Fit::unknown, nvme, std::nullopt};
  if (plan.cluster.nvme)
    v.nvme = {fit_of(nvme, nvme, plan.cluster.nvme->capacity.count()), nvme,
              plan.cluster.nvme->capacity.count()};
  const auto good = [](Fit f) { return f == Fit::fits || f == Fit::unknown; };
  v.fits = good(v.gpu.fit) && good(v.host.fit) && good(v.nvme.fit);
  v.limited_by = !good(v.gpu.fit)    ? "gpu"
                 : !good(v.host.fit) ? "host"
                 : !good(v.nvme.fit) ? "nvme"
                                     : "";
}

}  // namespace

Estimate assemble(const Plan& plan, const Calibration& calibration, const Program& program,
                  const MemoryProfile& memory, ReservedMemory reserved, const TimeEstimate& time) {
  Estimate e;
  e.capacity_bytes = plan.cluster.gpu.capacity.count();
  e.usable_bytes = plan.cluster.gpu.usable.count();
  e.rank = program.rank;
  e.model_bytes = program.model_bytes;
  e.run = memory.run;
  e.phases = memory.phases;
  e.peak_phase = memory.peak_phase;

  const bool fitted = plan.cluster.gpu.arch == calibration.arch;
  const ProcessOverhead& overhead = calibration.overhead_of(plan.framework.kind);
  Outside outside = outside_of(plan, overhead, program.rank);
  outside.nccl += program.communicator_bytes;
  outside.upper += program.communicator_bytes;
  e.allocated = {memory.peak, memory.peak};
  const std::int64_t room = e.usable_bytes - outside.point();
  const std::int64_t room_upper = e.usable_bytes - outside.upper;
  const bool simulates = reserved == ReservedMemory::simulated;
  if (program.one_block) {
    e.reserved = e.allocated;
  } else {
    e.reserved = reserved_by_ratio(memory.peak, calibration, room, room_upper);
  }
  if (!program.one_block && simulates) {
    const ReservedProfile blocks = simulate_reserved(program);
    e.reserved =
        simulated_reserved(program, blocks, upper_ratio_of(plan, calibration), room, room_upper);
    if (program.counts_blocks) {
      e.phases = blocks.phases;
      e.allocated = {blocks.allocated, blocks.allocated};
    }
  }
  e.device = {e.reserved.point + outside.point(), e.reserved.upper + outside.upper};
  add_breakdown(e, memory, e.reserved.point - memory.peak, outside,
                fitted ? Source::calibrated : Source::assumed,
                simulates ? Source::modelled : Source::calibrated);

  const HostMemory& rank = program.host;
  const std::int64_t ranks = plan.cluster.gpus_per_node;
  e.host_per_node = {checked_mul(rank.pageable, ranks), checked_mul(rank.pinned, ranks),
                     checked_mul(rank.nvme, ranks)};
  add_traffic(e, program, plan.cluster);
  e.time = time;
  e.time.source = fitted ? Source::calibrated : Source::assumed;
  add_verdict(e, plan);
  return e;
}

namespace {

/// `program` is one rank's, `passes` what it was lowered from; `timed` is the rank that the step
/// waits for.
Estimate estimate_program(const Model& model, const Plan& plan, const Calibration& calibration,
                          const Passes& passes, const Program& program, const MemoryProfile& memory,
                          const Program& timed, ReservedMemory reserved) {
  const TimeEstimate time =
      plan.workload.kind == WorkKind::inference
          ? estimate_generation_time(passes.rank.model(), plan, calibration.time)
          : estimate_time(timed, plan, passes, calibration.time);
  Estimate e = assemble(plan, calibration, program, memory, reserved, time);
  e.parameters = model.parameter_count();
  e.trainable_parameters = model.trainable_count();
  e.tensors = model.tensor_count();
  return e;
}

}  // namespace

std::string_view name_of(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return "fits";
    case Fit::tight:
      return "tight";
    case Fit::does_not_fit:
      return "does_not_fit";
    case Fit::unknown:
      return "unknown";
  }
  return "";
}

std::int64_t least_device_upper(const Plan& plan, const Calibration& calibration,
                                std::int64_t allocated) {
  // simulated_reserved(): what it bounds by is never below the live bytes, with the same ratio.
  const ProcessOverhead& overhead = calibration.overhead_of(plan.framework.kind);
  // The first stage of a pipeline has the fewest neighbours, and no loss.
  return scaled(allocated, upper_ratio_of(plan, calibration)) + outside_of(plan, overhead, 0).upper;
}

Program worst_program(const Model& model, const Plan& plan) {
  return worst_rank(RankModel(model, plan), plan).program;
}

Estimate estimate(const Model& model, const Plan& plan, const Calibration& calibration,
                  ReservedMemory reserved) {
  return estimate(model, plan, run_passes(model, plan, calibration.time), calibration, reserved);
}

Estimate estimate(const Model& model, const Plan& plan, const Passes& passes,
                  const Calibration& calibration, ReservedMemory reserved) {
  const WorstRank worst = worst_rank(passes.rank, plan);
  Estimate e = estimate_program(model, plan, calibration, passes, worst.program, worst.memory,
                                worst.timed(), reserved);
  e.ranks_differ = worst.differ;
  return e;
}

std::vector<Estimate> estimate_ranks(const Model& model, const Plan& plan,
                                     const Calibration& calibration) {
  return estimate_ranks(model, plan, run_passes(model, plan, calibration.time), calibration,
                        ReservedMemory::simulated);
}

DetailedEstimate estimate_in_detail(const Model& model, const Plan& plan,
                                    const Calibration& calibration) {
  const Passes passes = run_passes(model, plan, calibration.time);
  const Model& share = passes.rank.model();
  WorstRank worst = worst_rank(passes.rank, plan);
  const auto estimate_of = [&](const Program& program, const MemoryProfile& memory) {
    return estimate_program(model, plan, calibration, passes, program, memory, worst.timed(),
                            ReservedMemory::simulated);
  };
  DetailedEstimate detail;
  detail.estimate = estimate_of(worst.program, worst.memory);
  if (worst.differ) {
    for (const std::int64_t rank : distinct_ranks(share, plan)) {
      if (rank == worst.program.rank) {
        detail.ranks.push_back(detail.estimate);
        continue;
      }
      const Program program = lower(share, plan, passes.rank.run(), rank);
      detail.ranks.push_back(estimate_of(program, simulate_memory(program)));
    }
  }
  detail.estimate.ranks_differ = worst.differ;
  detail.program = std::move(worst.program);
  return detail;
}

std::vector<Estimate> estimate_ranks(const Model& model, const Plan& plan, const Passes& passes,
                                     const Calibration& calibration, ReservedMemory reserved) {
  const Model& share = passes.rank.model();
  std::vector<Estimate> all;
  for (const std::int64_t rank : distinct_ranks(share, plan)) {
    const Program program = lower(share, plan, passes.rank.run(), rank);
    all.push_back(estimate_program(model, plan, calibration, passes, program,
                                   simulate_memory(program), program, reserved));
  }
  return all;
}

}  // namespace shardplan
