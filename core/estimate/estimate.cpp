#include "estimate/estimate.h"

#include <algorithm>
#include <utility>

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

/// What a GPU has beside context and NCCL, and at least has.
struct Room {
  std::int64_t point = 0, upper = 0;

  /// For the upper bound everything takes `ratio` times as much, in the same room.
  std::int64_t shrunk(std::int64_t held, double ratio) const {
    return scaled(upper - held, 1 / ratio);
  }
};

/// The allocator with memory to spare; where that is more than `room`, with no more than that: it
/// gives cached segments back before it fails. docs/allocator.md, "Under pressure".
std::int64_t simulated(const ReservedRuns& runs, std::int64_t room) {
  const ReservedProfile& spare = runs.spare();
  if (spare.reserved <= room || room <= 0) return spare.reserved;
  if (spare.requested > room) return spare.reserved;  // it would fail, however it cuts its blocks
  const ReservedProfile tight = runs.within(room);
  return tight.out_of_memory ? spare.reserved : tight.reserved;
}

/// `held`: what chance may keep alive on top.
Range simulated_reserved(const ReservedRuns& runs, std::int64_t held, double upper_ratio,
                         const Room& room) {
  Range range;
  range.point = simulated(runs, room.point);
  const std::int64_t most = scaled(runs.spare().reserved, upper_ratio) + held;
  range.upper = most;
  if (most > room.upper && room.upper > 0) {
    const std::int64_t shrunk = room.shrunk(held, upper_ratio);
    if (simulated(runs, shrunk) <= shrunk) range.upper = room.upper;
  }
  range.upper = std::max(range.upper, range.point);
  return range;
}

/// Without simulation: with room to spare the allocator caches freely.
Range reserved_by_ratio(std::int64_t allocated, const Calibration& c, const Room& room) {
  return {std::clamp(room.point, allocated, scaled(allocated, c.reserved_ratio)),
          std::clamp(room.upper, scaled(allocated, c.reserved_ratio),
                     scaled(allocated, c.reserved_ratio_upper))};
}

/// The ranks that may need more than others: each one's program and live bytes.
struct RankPrograms {
  std::vector<Program> programs;
  std::vector<MemoryProfile> memory;
  std::size_t worst = 0;  ///< the one whose peak is highest
  std::size_t timed = 0;  ///< the one that computes most, which the others of a pipeline wait for
  bool differ = false;

  std::vector<const Program*> all() const {
    std::vector<const Program*> all;
    for (const Program& program : programs) all.push_back(&program);
    return all;
  }
};

RankPrograms lower_ranks(const RankModel& share, const Plan& plan) {
  RankPrograms ranks;
  double most = 0;
  for (const std::int64_t rank : distinct_ranks(share.model(), plan)) {
    const std::size_t at = ranks.programs.size();
    const Program& program =
        ranks.programs.emplace_back(lower(share.model(), plan, share.run(), rank));
    const MemoryProfile& memory = ranks.memory.emplace_back(simulate_memory(program));
    const double flops = plan.parallel.pipeline > 1 ? hardware_flops(program) : 0;
    ranks.differ = ranks.differ || memory.peak != ranks.memory[ranks.worst].peak;
    if (at == 0 || memory.peak > ranks.memory[ranks.worst].peak) ranks.worst = at;
    if (at == 0 || flops > most) ranks.timed = at;
    most = std::max(most, flops);
  }
  return ranks;
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

Outside outside_of(const Plan& plan, const Calibration& calibration, const Program& program) {
  Outside outside = outside_of(plan, calibration.overhead_of(plan.framework.kind), program.rank);
  outside.nccl += program.communicator_bytes;
  outside.upper += program.communicator_bytes;
  return outside;
}

Room room_beside(const Outside& outside, const Plan& plan) {
  const std::int64_t usable = plan.cluster.gpu.usable.count();
  return {usable - outside.point(), usable - outside.upper};
}

}  // namespace

std::vector<ReservedRuns> allocator_runs(const Plan& plan, const Calibration& calibration,
                                         std::span<const Program* const> programs) {
  std::vector<std::int64_t> limits;
  for (const Program* program : programs) {
    const Room room = room_beside(outside_of(plan, calibration, *program), plan);
    limits.push_back(room.point);
    limits.push_back(room.shrunk(program->held_at_most, upper_ratio_of(plan, calibration)));
  }
  return reserved_runs(programs, std::move(limits));
}

Estimate assemble(const Plan& plan, const Calibration& calibration, const Program& program,
                  const MemoryProfile& memory, const ReservedRuns* runs, const TimeEstimate& time) {
  Estimate e;
  e.capacity_bytes = plan.cluster.gpu.capacity.count();
  e.usable_bytes = plan.cluster.gpu.usable.count();
  e.rank = program.rank;
  e.model_bytes = program.model_bytes;
  e.run = memory.run;
  e.phases = memory.phases;
  e.peak_phase = memory.peak_phase;

  const bool fitted = plan.cluster.gpu.arch == calibration.arch;
  const Outside outside = outside_of(plan, calibration, program);
  const Room room = room_beside(outside, plan);
  e.allocated = {memory.peak, memory.peak};
  if (program.one_block) {
    e.reserved = e.allocated;
  } else if (runs == nullptr) {
    e.reserved = reserved_by_ratio(memory.peak, calibration, room);
  } else {
    e.reserved =
        simulated_reserved(*runs, program.held_at_most, upper_ratio_of(plan, calibration), room);
    if (program.counts_blocks) {
      const ReservedProfile& blocks = runs->spare();
      e.phases = blocks.phases;
      e.allocated = {blocks.allocated, blocks.allocated};
    }
  }
  e.device = {e.reserved.point + outside.point(), e.reserved.upper + outside.upper};
  add_breakdown(e, memory, e.reserved.point - memory.peak, outside,
                fitted ? Source::calibrated : Source::assumed,
                runs != nullptr || program.one_block ? Source::modelled : Source::calibrated);

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

/// What the estimates of a plan's ranks have in common.
struct Question {
  const Model& model;
  const Plan& plan;
  const Passes& passes;  ///< what the ranks' programs were lowered from
  const Calibration& calibration;

  /// `timed`: the rank that the step waits for.
  TimeEstimate time(const Program& timed) const {
    return plan.workload.kind == WorkKind::inference
               ? estimate_generation_time(passes.rank.model(), plan, calibration.time)
               : estimate_time(timed, plan, passes, calibration.time);
  }

  /// None where the allocator is not simulated, or has nothing to do.
  std::vector<ReservedRuns> runs(const std::vector<const Program*>& programs,
                                 ReservedMemory reserved) const {
    if (reserved == ReservedMemory::ratio || programs.front()->one_block) return {};
    return allocator_runs(plan, calibration, programs);
  }

  /// `runs`: of several programs, this one's is number `i`.
  Estimate estimate(const Program& program, const MemoryProfile& memory,
                    const std::vector<ReservedRuns>& runs, std::size_t i,
                    const TimeEstimate& time) const {
    Estimate e =
        assemble(plan, calibration, program, memory, runs.empty() ? nullptr : &runs[i], time);
    e.parameters = model.parameter_count();
    e.trainable_parameters = model.trainable_count();
    e.tensors = model.tensor_count();
    return e;
  }
};

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
  RankPrograms ranks = lower_ranks(RankModel(model, plan), plan);
  return std::move(ranks.programs[ranks.worst]);
}

Estimate estimate(const Model& model, const Plan& plan, const Calibration& calibration,
                  ReservedMemory reserved) {
  return estimate(model, plan, run_passes(model, plan, calibration.time), calibration, reserved);
}

Estimate estimate(const Model& model, const Plan& plan, const Passes& passes,
                  const Calibration& calibration, ReservedMemory reserved) {
  const Question question{model, plan, passes, calibration};
  const RankPrograms ranks = lower_ranks(passes.rank, plan);
  const Program& worst = ranks.programs[ranks.worst];
  const std::vector<ReservedRuns> runs = question.runs({&worst}, reserved);
  Estimate e = question.estimate(worst, ranks.memory[ranks.worst], runs, 0,
                                 question.time(ranks.programs[ranks.timed]));
  e.ranks_differ = ranks.differ;
  return e;
}

DetailedEstimate estimate_in_detail(const Model& model, const Plan& plan,
                                    const Calibration& calibration) {
  const Passes passes = run_passes(model, plan, calibration.time);
  const Question question{model, plan, passes, calibration};
  RankPrograms ranks = lower_ranks(passes.rank, plan);
  Program& worst = ranks.programs[ranks.worst];
  const TimeEstimate time = question.time(ranks.programs[ranks.timed]);
  DetailedEstimate detail;
  if (ranks.differ) {
    const std::vector<ReservedRuns> runs = question.runs(ranks.all(), ReservedMemory::simulated);
    for (std::size_t i = 0; i < ranks.programs.size(); ++i)
      detail.ranks.push_back(question.estimate(ranks.programs[i], ranks.memory[i], runs, i, time));
    detail.estimate = detail.ranks[ranks.worst];
  } else {
    const std::vector<ReservedRuns> runs = question.runs({&worst}, ReservedMemory::simulated);
    detail.estimate = question.estimate(worst, ranks.memory[ranks.worst], runs, 0, time);
  }
  detail.estimate.ranks_differ = ranks.differ;
  detail.program = std::move(worst);
  return detail;
}

std::vector<Estimate> estimate_ranks(const Model& model, const Plan& plan,
                                     const Calibration& calibration) {
  return estimate_ranks(model, plan, run_passes(model, plan, calibration.time), calibration,
                        ReservedMemory::simulated);
}

std::vector<Estimate> estimate_ranks(const Model& model, const Plan& plan, const Passes& passes,
                                     const Calibration& calibration, ReservedMemory reserved) {
  const Question question{model, plan, passes, calibration};
  const RankPrograms ranks = lower_ranks(passes.rank, plan);
  const std::vector<ReservedRuns> runs = question.runs(ranks.all(), reserved);
  std::vector<Estimate> all;
  for (std::size_t i = 0; i < ranks.programs.size(); ++i)
    all.push_back(question.estimate(ranks.programs[i], ranks.memory[i], runs, i,
                                    question.time(ranks.programs[i])));
  return all;
}

}  // namespace shardplan
