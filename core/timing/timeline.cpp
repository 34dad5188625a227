#include "timing/timeline.h"

#include <algorithm>
#include <cmath>

#include "timing/clocks.h"
#include "timing/collective_time.h"

namespace shardplan {
namespace {

/// An event that takes time (or that a trace wants), timed once.
struct Step {
  ClockMove move;  ///< compute: of this event and of those that joined it
  std::size_t event = 0;
  std::size_t end = 0;  ///< begin_repeat: index of its end
};

class Simulation {
 public:
  Simulation(const Program& program, const Plan& plan, const TimeRates& rates, Trace* trace,
             std::span<const TimedKernel> timed)
      : program_(program),
        plan_(plan),
        cluster_(plan.cluster),
        rates_(rates),
        trace_(trace),
        kernels_(timed.begin(), timed.end()),
        clocks_(clock_rules(program, plan, rates)) {
    compile();
  }

  StepTimes run() {
    run_range(0, steps_.size());
    finish();
    return times_;
  }

 private:
  /// Times every kernel that is not timed yet, and every event once.
  void compile() {
    time_kernels(program_.kernels, plan_, rates_, kernels_);
    std::vector<std::size_t> open;
    std::size_t index = 0;
    for_each_event(program_, [&](const Event& e, std::int64_t times) {
      const std::size_t event = index++;
      if (!wanted(e)) return;
      if (e.kind == Event::Kind::begin_phase) ideal_phase_ = static_cast<std::size_t>(e.phase);
      if (e.kind == Event::Kind::begin_repeat) open.push_back(steps_.size());
      if (e.kind == Event::Kind::end_repeat) {
        steps_[open.back()].end = steps_.size();
        open.pop_back();
      }
      add_step(timed(e, event, static_cast<double>(times)));
    });
    times_.ideal = std::max(times_.ideal, ideal_links_);
  }

  const GroupShape& shape_of(const Event& e) const {
    return program_.groups[static_cast<std::size_t>(e.group)];
  }

  bool wanted(const Event& e) const {
    switch (e.kind) {
      case Event::Kind::alloc:
      case Event::Kind::free:
      case Event::Kind::blocks:
        return trace_ != nullptr;
      case Event::Kind::end_phase:
      case Event::Kind::once:
      case Event::Kind::empty_cache:
      case Event::Kind::gradients_whole:
      case Event::Kind::mark:
      case Event::Kind::throttle:
        return false;
      case Event::Kind::follow:  // another stream's matters to the allocator alone
        return e.stream == Stream::copy;
      default:
        return true;
    }
  }

  Step timed(const Event& e, std::size_t event, double times) {
    if (e.kind == Event::Kind::compute)
      for (std::int64_t i = 0; i < e.count; ++i) {
        const TimedKernel& kernel = kernels_[static_cast<std::size_t>(e.first + i)];
        times_.ideal += times * kernel.ideal;
        if (ideal_phase_ < times_.ideal_of_phases.size())
          times_.ideal_of_phases[ideal_phase_] += times * kernel.ideal;
        times_.flops += times * kernel.flops;
      }
    if (e.kind == Event::Kind::collective)
      ideal_links_ += times * ideal_collective_seconds(e, shape_of(e), cluster_);
    return {clock_move(e, program_, plan_, rates_, kernels_), event};
  }

  /// Neighbouring kernels become one sequence, unless a trace wants each.
  void add_step(const Step& step) {
    const bool joins = trace_ == nullptr && step.move.kind == Event::Kind::compute &&
                       !steps_.empty() && steps_.back().move.kind == Event::Kind::compute;
    if (joins)
      steps_.back().move.sequence.then(step.move.sequence);
    else
      steps_.push_back(step);
  }

  void run_range(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Step& s = steps_[i];
      const Event& e = program_.events[s.event];
      switch (e.kind) {
        case Event::Kind::compute:
          run_kernels(s);
          break;
        case Event::Kind::collective:
          run_collective(s);
          break;
        case Event::Kind::copy: {
          const StreamClocks::Cost cost = clocks_.copy(s.move);
          add_span(Stream::copy, false, cost.start, s.move.seconds, s.event);
          times_.exposed_copies += cost.exposed;
          break;
        }
        case Event::Kind::wait:
          (e.stream == Stream::copy ? times_.exposed_copies : times_.exposed_communication) +=
              clocks_.wait(e.stream, s.move.seconds).exposed;
          break;
        case Event::Kind::synchronize:
          clocks_.synchronize();
          break;
        case Event::Kind::follow:
          clocks_.follow(e.stream);
          break;
        case Event::Kind::host_optimizer:
          run_host_optimizer(s);
          break;
        case Event::Kind::begin_phase:
          begin_phase(e.phase);
          break;
        case Event::Kind::begin_repeat:
          run_repeat(i, e.count);
          i = s.end;
          break;
        case Event::Kind::alloc:
        case Event::Kind::free:
          note_memory(e);
          break;
        case Event::Kind::blocks:
          for_each_block(program_, e, [&](const Event& block) { note_memory(block); });
          break;
        default:
          break;
      }
    }
  }

  void note_memory(const Event& e) {
    trace_->memory.push_back(
        {clocks_.at.compute, e.category, e.kind == Event::Kind::alloc ? e.bytes : -e.bytes});
  }

  void begin_phase(Phase phase) {
    phase_ = phase;
    const double passes_end = clocks_.at.compute;
    const double bubble = clocks_.begin_phase(phase);
    if (phase == Phase::step && program_.bubble_share > 0) times_.bubble = bubble;
    if (trace_ == nullptr) return;
    if (phase == Phase::step && program_.bubble_share > 0) trace_->bubble_start = passes_end;
    trace_->phase_starts[static_cast<std::size_t>(phase_)] = clocks_.phase_start;
    std::vector<PhaseSpan>& phases = trace_->phases;
    if (!phases.empty() && phases.back().phase == phase) return;
    if (!phases.empty()) phases.back().end = clocks_.phase_start;
    phases.push_back({phase, clocks_.phase_start, clocks_.phase_start});
  }

  void run_host_optimizer(const Step& s) {
    const StreamClocks::Cost cost = clocks_.host_optimizer(s.move);
    times_.exposed_copies += cost.exposed;
    add_span(Stream::compute, true, cost.start, s.move.seconds, s.event);
    times_.optimizer += s.move.seconds;
  }

  void run_kernels(const Step& s) {
    if (trace_ == nullptr) {
      run_sequence(s.move.sequence);
      return;
    }
    const Event& e = program_.events[s.event];
    for (std::int64_t i = 0; i < e.count; ++i) {
      const auto row = static_cast<std::size_t>(e.first + i);
      const KernelSequence& kernel = kernels_[row].sequence;
      run_sequence(kernel);
      add_span(Stream::compute, false, clocks_.at.compute - kernel.busy, kernel.busy, s.event,
               &program_.kernels[row]);
    }
  }

  void run_sequence(const KernelSequence& sequence) {
    times_.idle += clocks_.run(sequence).idle;
    (phase_ == Phase::step ? times_.optimizer : times_.compute) += sequence.busy;
  }

  void run_collective(const Step& s) {
    const StreamClocks::Cost cost = clocks_.collective(s.move);
    times_.communication += s.move.seconds;
    times_.compute += cost.slowdown;
    times_.idle += cost.idle;
    times_.exposed_communication += cost.exposed;
    add_span(Stream::communication, false, cost.start, s.move.seconds, s.event);
  }

  /// Iterations until all clocks advance evenly; the rest, as long as none overtakes another, in
  /// one stride.
  void run_repeat(std::size_t begin, std::int64_t count) {
    const std::size_t end = steps_[begin].end;
    Clocks last{};
    StepTimes last_times;
    bool have = false;
    for (std::int64_t i = 0; i < count; ++i) {
      const Clocks before = clocks_.at;
      const StepTimes times = times_;
      run_range(begin + 1, end);
      const Clocks& at = clocks_.at;
      const Clocks delta{at.host - before.host, at.compute - before.compute,
                         at.communication - before.communication, at.copies - before.copies,
                         at.late - before.late};
      if (trace_ == nullptr && have && same(delta, last)) {
        const std::int64_t stride = safe_stride(delta, count - i - 1);
        if (stride > 0) {
          advance(delta, static_cast<double>(stride), times);
          i += stride;
        }
      }
      last = delta;
      have = true;
    }
  }

  static bool same(const Clocks& a, const Clocks& b) {
    const auto near = [](double x, double y) { return std::abs(x - y) <= 1e-9 * (x + y + 1e-9); };
    return near(a.host, b.host) && near(a.compute, b.compute) &&
           near(a.communication, b.communication) && near(a.copies, b.copies);
  }

  /// How many iterations leave every clock on its side of the others.
  std::int64_t safe_stride(const Clocks& d, std::int64_t most) const {
    const Clocks& at = clocks_.at;
    const double values[] = {at.host, at.compute, at.communication, at.copies};
    const double rates[] = {d.host, d.compute, d.communication, d.copies};
    double stride = static_cast<double>(most);
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b < 4; ++b) {
        if (rates[a] == 0 || rates[b] == 0) continue;
        const double gap = values[a] - values[b];
        const double closing = rates[b] - rates[a];
        if (gap <= 0 || closing <= 1e-12) continue;
        stride = std::min(stride, std::floor(gap / closing) - 2 - std::ceil(rates[b] / closing));
      }
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(stride));
  }

  void advance(const Clocks& d, double stride, const StepTimes& before) {
    clocks_.at.host += stride * d.host;
    clocks_.at.compute += stride * d.compute;
    clocks_.at.communication += stride * d.communication;
    clocks_.at.copies += stride * d.copies;
    clocks_.at.late += stride * d.late;
    const auto more = [&](double StepTimes::*field) {
      times_.*field += stride * (times_.*field - before.*field);
    };
    for (double StepTimes::*field :
         {&StepTimes::compute, &StepTimes::optimizer, &StepTimes::communication,
          &StepTimes::exposed_communication, &StepTimes::exposed_copies, &StepTimes::idle})
      more(field);
  }

  void finish() {
    times_.exposed_communication += clocks_.wait(Stream::communication).exposed;
    times_.exposed_copies += clocks_.wait(Stream::copy).exposed;
    times_.idle += std::max(0.0, clocks_.at.host - clocks_.at.compute);
    times_.step = std::max(clocks_.at.compute, clocks_.at.host);
    if (trace_ != nullptr && !trace_->phases.empty()) trace_->phases.back().end = times_.step;
  }

  void add_span(Stream stream, bool host, double start, double seconds, std::size_t event,
                const Kernel* kernel = nullptr) {
    if (trace_ != nullptr && seconds > 0)
      trace_->spans.push_back({stream, host, start, seconds, event, kernel});
  }

  const Program& program_;
  const Plan& plan_;
  const Cluster& cluster_;
  const TimeRates& rates_;
  Trace* trace_;
  std::vector<TimedKernel> kernels_;  ///< by row of Program::kernels
  std::vector<Step> steps_;
  StreamClocks clocks_;
  Phase phase_ = Phase::forward;
  double ideal_links_ = 0;
  std::size_t ideal_phase_ = 0;  ///< of the events that are timed
  StepTimes times_;
};

}  // namespace

StepTimes simulate_time(const Program& program, const Plan& plan, const TimeRates& rates,
                        Trace* trace, std::span<const TimedKernel> timed) {
  return Simulation(program, plan, rates, trace, timed).run();
}

}  // namespace shardplan
