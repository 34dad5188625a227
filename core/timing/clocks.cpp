#include "timing/clocks.h"

#include <algorithm>
#include <vector>

#include "timing/collective_time.h"

namespace shardplan {

ClockRules clock_rules(const Program& program, const Plan& plan, const TimeRates& rates) {
  return {rates.host.phase_seconds,   program.ready_once,     rates.host.collective_seconds,
          rates.host.message_seconds, rates.links.contention, program.bubble_share,
          plan.launch_blocking};
}

namespace {

/// What an event says of itself.
ClockMove described(const Event& e) {
  return {.kind = e.kind,
          .stream = e.stream,
          .name = e.name,
          .phase = e.phase,
          .ahead = e.ahead,
          .bucketed = e.bucketed,
          .once_a_step = e.once_a_step,
          .to_device = e.to_device,
          .keeps_passed = e.keeps_passed,
          .count = e.count,
          .messages = e.messages};
}

/// PyTorch's passes are taken to move as many bytes a second as CPUAdam on the same cores. All cores
/// of a node move what its memory gives, in DeepSpeed's update as in our engine's: as much less
/// than where that was timed as the memory of such GPUs' nodes is slower.
double update_rate(HostOptimizer optimizer, const HostRates& rates, const Gpu& gpu) {
  const double memory = static_cast<double>(gpu.abilities.host_memory_gbs) /
                        static_cast<double>(rates.memory_gbs);
  switch (optimizer) {
    case HostOptimizer::deepspeed:
      return rates.deepspeed_adam_elements_per_second;
    case HostOptimizer::deepspeed_passes:
      return kCpuAdamBytes * rates.deepspeed_adam_elements_per_second;
    case HostOptimizer::deepspeed_all_cores:
      return memory * rates.native_adam_bytes_per_second;
    case HostOptimizer::torch:
      return rates.torch_adam_elements_per_second;
    case HostOptimizer::native:
      return memory * rates.native_adam_bytes_per_second;
    case HostOptimizer::native_rounding:
      return std::min(memory * rates.native_adam_bytes_per_second,
                      rates.native_rounding_bytes_per_second);
  }
  return rates.deepspeed_adam_elements_per_second;
}

}  // namespace

ClockMove clock_move(const Event& e, const Program& program, const Plan& plan,
                     const TimeRates& rates, std::span<const TimedKernel> kernels) {
  ClockMove move = described(e);
  switch (e.kind) {
    case Event::Kind::compute:
      for (std::int64_t i = 0; i < e.count; ++i)
        move.sequence.then(kernels[static_cast<std::size_t>(e.first + i)].sequence);
      break;
    case Event::Kind::collective:
      move.seconds = collective_seconds(e, program.groups[static_cast<std::size_t>(e.group)],
                                        plan.cluster, rates.links);
      break;
    case Event::Kind::copy:
    case Event::Kind::wait:
      move.seconds = copy_seconds(e, plan.cluster, rates.links);
      break;
    case Event::Kind::host_optimizer:
      move.seconds = static_cast<double>(e.bytes) *
                     static_cast<double>(plan.cluster.gpus_per_node) /
                     update_rate(e.optimizer, rates.host, plan.cluster.gpu);
      break;
    default:
      break;
  }
  return move;
}

Pace pace_of(const Program& program, const Plan& plan, const TimeRates& rates) {
  std::vector<TimedKernel> kernels;
  time_kernels(program.kernels, plan, rates, kernels);
  Pace pace{clock_rules(program, plan, rates), {}};
  pace.moves.reserve(program.events.size());
  for (const Event& e : program.events)
    pace.moves.push_back(clock_move(e, program, plan, rates, kernels));
  return pace;
}

Pace host_ahead(const Program& program) {
  Pace pace;
  pace.moves.reserve(program.events.size());
  for (const Event& e : program.events) {
    ClockMove move = described(e);
    move.seconds = 1;
    move.sequence = {.issue = 0, .busy = 1, .chain = 1};
    pace.moves.push_back(move);
  }
  return pace;
}

double StreamClocks::wait_until(double until) {
  if (until <= at.compute) return 0;
  const double waited = until - at.compute;
  at.compute = until;
  return waited;
}

StreamClocks::Cost StreamClocks::run(const KernelSequence& sequence) {
  if (rules_.launch_blocking) {  // the host issues a kernel, waits for its end, issues the next
    const double issued = std::max(at.compute, at.host) + sequence.issue;
    const Cost cost{.start = issued, .idle = issued - at.compute};
    at.compute = at.host = issued + sequence.busy;
    return cost;
  }
  const double end = std::max(at.compute + sequence.busy, at.host + sequence.chain);
  const Cost cost{.start = end - sequence.busy, .idle = end - at.compute - sequence.busy};
  at.compute = end;
  at.late += cost.idle;
  at.host += sequence.issue;
  return cost;
}

StreamClocks::Cost StreamClocks::collective(const ClockMove& m) {
  at.host += rules_.collective_seconds * static_cast<double>(m.count) +
             rules_.message_seconds * static_cast<double>(m.messages);
  if (m.once_a_step) pending_once_ += m.seconds;
  Cost cost;
  if (rules_.launch_blocking) {  // its kernels too
    cost.idle = wait_until(at.host);
    at.communication = at.compute + m.seconds;
    cost.start = at.communication - m.seconds;
    cost.exposed = wait_until(at.communication);
    note_once(cost.exposed);
    at.host = at.compute;
    return cost;
  }
  if (m.bucketed) return m.ahead ? gathered(m) : bucketed(m);
  if (!m.ahead) at.late += std::max(0.0, at.host - std::max(at.communication, at.compute));
  cost.start = m.ahead ? std::max(at.communication, at.host)
                       : std::max({at.communication, at.compute, at.host});
  at.communication = cost.start + m.seconds;
  if (m.ahead && at.compute > cost.start) {  // what it runs beside slows down
    cost.slowdown = rules_.contention * std::min(at.compute - cost.start, m.seconds);
    at.compute += cost.slowdown;
  }
  return cost;
}

/// Ready at even distances over the phase; the last one when the phase is done.
StreamClocks::Cost StreamClocks::bucketed(const ClockMove& m) {
  const double calls = static_cast<double>(m.count);
  const double phase = std::max(0.0, at.compute - phase_start);
  Cost cost;
  cost.slowdown = rules_.contention * std::min(m.seconds, phase * (1 - 1 / calls));
  at.compute += cost.slowdown;
  const double end =
      std::max({at.compute + m.seconds / calls, phase_start + phase / calls + m.seconds,
                at.communication + m.seconds});
  cost.start = end - m.seconds;
  at.communication = end;
  return cost;
}

/// In a queue of its own beside the phase: exchanges of the network do not wait for it.
StreamClocks::Cost StreamClocks::gathered(const ClockMove& m) {
  gathers_ = std::max(gathers_, phase_start) + m.seconds;
  const double beside = std::clamp(at.compute - (gathers_ - m.seconds), 0.0, m.seconds);
  Cost cost{.start = gathers_ - m.seconds, .slowdown = rules_.contention * beside};
  at.compute += cost.slowdown;
  cost.exposed = wait_until(gathers_);
  note_once(cost.exposed);
  return cost;
}

void StreamClocks::note_once(double exposed) {
  once_ += std::min(exposed, pending_once_);
  pending_once_ = 0;
}

StreamClocks::Cost StreamClocks::copy(const ClockMove& m) {
  Cost cost;
  cost.start = m.ahead ? std::max(at.copies, at.host) : std::max({at.copies, at.compute, at.host});
  at.copies = cost.start + m.seconds;
  if (!m.to_device) return cost;
  at.communication = std::max(at.communication, at.copies);  // a gather reads what was copied
  cost.exposed = wait_until(at.copies);
  return cost;
}

StreamClocks::Cost StreamClocks::wait(Stream stream, double but_last) {
  if (stream == Stream::copy) return {.exposed = wait_until(at.copies - but_last)};
  const Cost cost{.exposed = wait_until(at.communication)};
  note_once(cost.exposed);
  return cost;
}

StreamClocks::Cost StreamClocks::host_optimizer(const ClockMove& m) {
  if (!m.ahead) at.host = std::max({at.host, at.compute, at.copies});
  const Cost cost{.start = at.host, .exposed = m.ahead ? 0 : wait_until(at.host)};
  at.host += m.seconds;
  if (!m.ahead) at.compute = at.host;
  return cost;
}

/// Before the optimizer the passes of the step are done: what the pipeline was not full. What is
/// done once a step does not make the turns of micro-batches longer. Where the host gives a step as
/// a whole it goes on meanwhile, so that what was late for it is made up for.
double StreamClocks::begin_phase(Phase phase) {
  double bubble = 0;
  if (phase == Phase::step && rules_.bubble_share > 0) {  // else the host runs ahead into it
    const double late = rules_.ready_once ? at.late : 0;
    bubble = std::max(0.0, rules_.bubble_share * (at.compute - once_ - late) - late);
    at.compute += bubble;
    at.host = std::max(at.host, at.compute);
  }
  if (!rules_.ready_once || !begun_) at.host += rules_.phase_seconds;
  if (!begun_) at.late -= rules_.phase_seconds;  // every stage begins as late
  begun_ = true;
  phase_start = std::max(at.compute, at.host);
  return bubble;
}

void StreamClocks::follow(Stream stream) {
  double& clock = stream == Stream::copy            ? at.copies
                  : stream == Stream::communication ? at.communication
                                                    : at.compute;
  clock = std::max(clock, at.compute);
}

void StreamClocks::synchronize() {
  at.host = std::max(at.host, at.compute);
}

void StreamClocks::host_waits(double until) {
  at.host = std::max(at.host, until);
}

void StreamClocks::move(const ClockMove& m) {
  switch (m.kind) {
    case Event::Kind::compute:
      run(m.sequence);
      break;
    case Event::Kind::collective:
      collective(m);
      break;
    case Event::Kind::copy:
      copy(m);
      break;
    case Event::Kind::wait:
      wait(m.stream, m.seconds);
      break;
    case Event::Kind::follow:
      follow(m.stream);
      break;
    case Event::Kind::synchronize:
      synchronize();
      break;
    case Event::Kind::host_optimizer:
      host_optimizer(m);
      break;
    case Event::Kind::begin_phase:
      begin_phase(m.phase);
      break;
    default:
      break;
  }
}

}  // namespace shardplan
