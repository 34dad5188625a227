#include "timing/timeline.h"

#include <algorithm>
#include <cmath>

#include "timing/collective_time.h"

namespace shardplan {
namespace {

/// An event that takes time (or that a trace wants), timed once.
struct Step {
  Event::Kind kind = Event::Kind::compute;
  KernelSequence sequence;  ///< compute: of this event and of those that joined it
  double seconds = 0;
  std::size_t event = 0;
  std::size_t end = 0;  ///< begin_repeat: index of its end
};

struct Clocks {
  double host = 0, compute = 0, communication = 0, copies = 0;
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
        kernels_(timed.begin(), timed.end()) {
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
      if (!wanted(e.kind)) return;
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

  bool wanted(Event::Kind kind) const {
    switch (kind) {
      case Event::Kind::alloc:
      case Event::Kind::free:
      case Event::Kind::blocks:
        return trace_ != nullptr;
      case Event::Kind::end_phase:
      case Event::Kind::once:
      case Event::Kind::gradients_whole:
        return false;
      default:
        return true;
    }
  }

  Step timed(const Event& e, std::size_t event, double times) {
    Step step{.kind = e.kind, .event = event};
    switch (e.kind) {
      case Event::Kind::compute:
        for (std::int64_t i = 0; i < e.count; ++i) {
          const TimedKernel& kernel = kernels_[static_cast<std::size_t>(e.first + i)];
          step.sequence.then(kernel.sequence);
          times_.ideal += times * kernel.ideal;
          times_.flops += times * kernel.flops;
        }
        break;
      case Event::Kind::collective:
        step.seconds = collective_seconds(e, shape_of(e), cluster_, rates_.links);
        ideal_links_ += times * ideal_collective_seconds(e, shape_of(e), cluster_);
        break;
      case Event::Kind::copy:
        step.seconds = copy_seconds(e, cluster_, rates_.links);
        break;
      case Event::Kind::host_optimizer:
        step.seconds =
            static_cast<double>(e.bytes) * static_cast<double>(cluster_.gpus_per_node) /
            (e.optimizer == HostOptimizer::torch ? rates_.host.torch_adam_elements_per_second
                                                 : rates_.host.deepspeed_adam_elements_per_second);
        break;
      default:
        break;
    }
    return step;
  }

  /// Neighbouring kernels become one sequence, unless a trace wants each.
  void add_step(const Step& step) {
    const bool joins = trace_ == nullptr && step.kind == Event::Kind::compute && !steps_.empty() &&
                       steps_.back().kind == Event::Kind::compute;
    if (joins)
      steps_.back().sequence.then(step.sequence);
    else
      steps_.push_back(step);
  }

  void run_range(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Step& s = steps_[i];
      const Event& e = program_.events[s.event];
      switch (s.kind) {
        case Event::Kind::compute:
          run_kernels(s);
          break;
        case Event::Kind::collective:
          run_collective(s, e);
          break;
        case Event::Kind::copy:
          run_copy(s, e);
          break;
        case Event::Kind::wait:
          wait(e.stream == Stream::copy ? at_.copies : at_.communication,
               e.stream == Stream::copy ? times_.exposed_copies : times_.exposed_communication);
          break;
        case Event::Kind::synchronize:
          at_.host = std::max(at_.host, at_.compute);
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
        {at_.compute, e.category, e.kind == Event::Kind::alloc ? e.bytes : -e.bytes});
  }

  void begin_phase(Phase phase) {
    phase_ = phase;
    if (phase == Phase::step) wait_for_stages();
    at_.host += rates_.host.phase_seconds;
    phase_start_ = std::max(at_.compute, at_.host);
    if (trace_ == nullptr) return;
    trace_->phase_starts[static_cast<std::size_t>(phase_)] = phase_start_;
    std::vector<PhaseSpan>& phases = trace_->phases;
    if (!phases.empty() && phases.back().phase == phase) return;
    if (!phases.empty()) phases.back().end = phase_start_;
    phases.push_back({phase, phase_start_, phase_start_});
  }

  /// The passes of the step are done: what the pipeline was not full.
  void wait_for_stages() {
    if (program_.bubble_share <= 0) return;  // the host runs ahead into the optimizer
    times_.bubble = program_.bubble_share * at_.compute;
    if (trace_ != nullptr) trace_->bubble_start = at_.compute;
    at_.compute += times_.bubble;
    at_.host = std::max(at_.host, at_.compute);
  }

  void run_host_optimizer(const Step& s) {
    at_.host = std::max({at_.host, at_.compute, at_.copies});
    wait(at_.host, times_.exposed_copies);
    add_span(Stream::compute, true, at_.host, s.seconds, s.event);
    at_.host += s.seconds;
    at_.compute = at_.host;
    times_.optimizer += s.seconds;
  }

  void run_kernels(const Step& s) {
    if (trace_ != nullptr) {
      run_each_kernel(program_.events[s.event], s.event);
      return;
    }
    run_sequence(s.sequence);
  }

  void run_sequence(const KernelSequence& sequence) {
    if (plan_.launch_blocking) {
      run_waiting(sequence);
      return;
    }
    const double end = std::max(at_.compute + sequence.busy, at_.host + sequence.chain);
    times_.idle += end - at_.compute - sequence.busy;
    (phase_ == Phase::step ? times_.optimizer : times_.compute) += sequence.busy;
    at_.compute = end;
    at_.host += sequence.issue;
  }

  /// The host issues a kernel, waits for its end, and issues the next.
  void run_waiting(const KernelSequence& sequence) {
    const double issued = std::max(at_.compute, at_.host) + sequence.issue;
    times_.idle += issued - at_.compute;
    (phase_ == Phase::step ? times_.optimizer : times_.compute) += sequence.busy;
    at_.compute = at_.host = issued + sequence.busy;
  }

  void run_each_kernel(const Event& e, std::size_t event) {
    for (std::int64_t i = 0; i < e.count; ++i) {
      const auto row = static_cast<std::size_t>(e.first + i);
      const KernelSequence& kernel = kernels_[row].sequence;
      run_sequence(kernel);
      add_span(Stream::compute, false, at_.compute - kernel.busy, kernel.busy, event,
               &program_.kernels[row]);
    }
  }

  void run_collective(const Step& s, const Event& e) {
    at_.host += rates_.host.collective_seconds * static_cast<double>(e.count);
    times_.communication += s.seconds;
    if (plan_.launch_blocking) {  // its kernels too
      wait(at_.host, times_.idle);
      at_.communication = at_.compute + s.seconds;
      add_span(Stream::communication, false, at_.communication - s.seconds, s.seconds, s.event);
      wait(at_.communication, times_.exposed_communication);
      at_.host = at_.compute;
      return;
    }
    const double slower = rates_.links.contention;
    if (e.bucketed) {
      // Ready at even distances over the phase; the last one when the phase is done.
      const double calls = static_cast<double>(e.count);
      const double phase = std::max(0.0, at_.compute - phase_start_);
      const double slowdown = slower * std::min(s.seconds, phase * (1 - 1 / calls));
      at_.compute += slowdown;
      times_.compute += slowdown;
      const double end =
          std::max({at_.compute + s.seconds / calls, phase_start_ + phase / calls + s.seconds,
                    at_.communication + s.seconds});
      add_span(Stream::communication, false, end - s.seconds, s.seconds, s.event);
      at_.communication = end;
      return;
    }
    const double start = e.ahead ? std::max(at_.communication, at_.host)
                                 : std::max({at_.communication, at_.compute, at_.host});
    add_span(Stream::communication, false, start, s.seconds, s.event);
    at_.communication = start + s.seconds;
    if (e.ahead && at_.compute > start) {  // what it runs beside slows down
      const double slowdown = slower * std::min(at_.compute - start, s.seconds);
      at_.compute += slowdown;
      times_.compute += slowdown;
    }
  }

  void run_copy(const Step& s, const Event& e) {
    const double start =
        e.ahead ? std::max(at_.copies, at_.host) : std::max({at_.copies, at_.compute, at_.host});
    add_span(Stream::copy, false, start, s.seconds, s.event);
    at_.copies = start + s.seconds;
    if (!e.to_device) return;
    at_.communication = std::max(at_.communication, at_.copies);  // a gather reads what was copied
    wait(at_.copies, times_.exposed_copies);
  }

  void wait(double until, double& exposed) {
    if (until <= at_.compute) return;
    exposed += until - at_.compute;
    at_.compute = until;
  }

  /// Iterations until all clocks advance evenly; the rest, as long as none overtakes another, in
  /// one stride.
  void run_repeat(std::size_t begin, std::int64_t count) {
    const std::size_t end = steps_[begin].end;
    Clocks last{};
    StepTimes last_times;
    bool have = false;
    for (std::int64_t i = 0; i < count; ++i) {
      const Clocks before = at_;
      const StepTimes times = times_;
      run_range(begin + 1, end);
      const Clocks delta{at_.host - before.host, at_.compute - before.compute,
                         at_.communication - before.communication, at_.copies - before.copies};
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
    const double values[] = {at_.host, at_.compute, at_.communication, at_.copies};
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
    at_.host += stride * d.host;
    at_.compute += stride * d.compute;
    at_.communication += stride * d.communication;
    at_.copies += stride * d.copies;
    const auto more = [&](double StepTimes::*field) {
      times_.*field += stride * (times_.*field - before.*field);
    };
    for (double StepTimes::*field :
         {&StepTimes::compute, &StepTimes::optimizer, &StepTimes::communication,
          &StepTimes::exposed_communication, &StepTimes::exposed_copies, &StepTimes::idle})
      more(field);
  }

  void finish() {
    wait(at_.communication, times_.exposed_communication);
    wait(at_.copies, times_.exposed_copies);
    wait(at_.host, times_.idle);
    times_.step = at_.compute;
    if (trace_ != nullptr && !trace_->phases.empty()) trace_->phases.back().end = at_.compute;
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
  Clocks at_;
  Phase phase_ = Phase::forward;
  double phase_start_ = 0;
  double ideal_links_ = 0;
  StepTimes times_;
};

}  // namespace

StepTimes simulate_time(const Program& program, const Plan& plan, const TimeRates& rates,
                        Trace* trace, std::span<const TimedKernel> timed) {
  return Simulation(program, plan, rates, trace, timed).run();
}

}  // namespace shardplan
