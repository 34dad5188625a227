// How far the host and each stream of a GPU have come, and how what a program gives them moves
// that: the host issues, the compute stream, the collectives' and the copies' stream work, each
// after what it depends on. timing/timeline.h says how sequences of kernels act.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "program/program.h"
#include "timing/rates.h"
#include "timing/timed_kernel.h"

namespace shardplan {

/// One event of a program as the clocks see it.
struct ClockMove {
  Event::Kind kind = Event::Kind::compute;
  Stream stream = Stream::compute;  ///< wait, follow, mark
  std::int32_t name = kUnnamed;     ///< mark, throttle
  Phase phase = Phase::forward;     ///< begin_phase
  /// collective, copy, host_optimizer: reads nothing that is being computed
  bool ahead = false;
  bool bucketed = false;      ///< collective
  bool once_a_step = false;   ///< collective
  bool to_device = false;     ///< copy
  bool keeps_passed = false;  ///< throttle
  std::int64_t count = 1;     ///< collective: calls; mark, throttle
  std::int64_t messages = 0;  ///< collective: Event::messages
  double seconds = 0;         ///< collective, copy, host_optimizer; wait: not waited for
  KernelSequence sequence;    ///< compute
  bool operator==(const ClockMove&) const = default;
};

/// What holds for a whole step.
struct ClockRules {
  double phase_seconds = 0;       ///< of the host, before a phase
  bool ready_once = false;        ///< before a step's first alone
  double collective_seconds = 0;  ///< of the host, for a call
  double message_seconds = 0;     ///< of the host, for a send or a receive that is a part of one
  double contention = 0;          ///< slowdown of computation while a collective runs
  double bubble_share = 0;        ///< Program::bubble_share
  bool launch_blocking = false;   ///< the host waits for every kernel
  bool operator==(const ClockRules&) const = default;
};
ClockRules clock_rules(const Program& program, const Plan& plan, const TimeRates& rates);

/// The event on the plan's machine. `kernels`: the program's, timed.
ClockMove clock_move(const Event& event, const Program& program, const Plan& plan,
                     const TimeRates& rates, std::span<const TimedKernel> kernels);

/// A program's events on a machine, one by one.
struct Pace {
  ClockRules rules;
  std::vector<ClockMove> moves;  ///< by index in Program::events
};
Pace pace_of(const Program& program, const Plan& plan, const TimeRates& rates);
/// Where no times are known: the host takes none for anything, so that it is ahead of the streams
/// by as much as the program allows.
Pace host_ahead(const Program& program);

/// Seconds since the step began, at which all that was given so far is done.
struct Clocks {
  double host = 0, compute = 0, communication = 0, copies = 0;
  double late = 0;  ///< of compute's: kernels and exchanges began later, as the host was behind

  double of(Stream stream) const {
    return stream == Stream::copy            ? copies
           : stream == Stream::communication ? communication
                                             : compute;
  }
};

class StreamClocks {
 public:
  StreamClocks() = default;
  explicit StreamClocks(const ClockRules& rules) : rules_(rules) {}

  /// What a move cost beside its own time.
  struct Cost {
    double start = 0;     ///< of what it ran
    double idle = 0;      ///< the compute stream waited for the host
    double exposed = 0;   ///< it waited for another stream
    double slowdown = 0;  ///< it ran slower beside a collective
  };
  Cost run(const KernelSequence& sequence);
  Cost collective(const ClockMove& move);
  Cost copy(const ClockMove& move);
  /// `but_last`: seconds of copies, the last ones, that it does not wait for.
  Cost wait(Stream stream, double but_last = 0);
  Cost host_optimizer(const ClockMove& move);
  /// Seconds that the rank waits for other stages of a pipeline before its optimizer.
  double begin_phase(Phase phase);
  void synchronize();
  void follow(Stream stream);
  /// The host goes no further before this time.
  void host_waits(double until);

  /// Any of these, as its kind says.
  void move(const ClockMove& move);

  Clocks at;
  double phase_start = 0;

 private:
  Cost bucketed(const ClockMove& move);
  Cost gathered(const ClockMove& move);
  double wait_until(double until);
  void note_once(double exposed);

  ClockRules rules_;
  double gathers_ = 0;       ///< when what a phase began to gather is there
  double pending_once_ = 0;  ///< seconds of collectives of once a step that nobody waited for yet
  double once_ = 0;          ///< of compute's, waited for such
  bool begun_ = false;       ///< a phase
};

}  // namespace shardplan
