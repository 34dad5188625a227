// Step time of a program: what the simulated timeline says, and what users ask of it.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/source.h"
#include "estimate/margins.h"
#include "estimate/passes.h"
#include "plan/plan.h"
#include "program/program.h"
#include "timing/rates.h"
#include "timing/timeline.h"

namespace shardplan {

struct Calibration;

/// Of generation, where a step is a batch of prompts and all of its new tokens.
struct GenerationTime {
  double prefill_seconds = 0;
  double decode_seconds = 0;            ///< all new tokens
  double decode_tokens_per_second = 0;  ///< of all sequences of all GPUs
  double prefill_tokens_per_second = 0;
  double decode_speed_of_light = 0;  ///< seconds at datasheet rates
};

/// Of an iteration whose rollout engine has GPUs of its own: what each group of GPUs does and waits
/// for. Each group's seconds add up to the iteration's.
struct GpuGroups {
  std::int64_t trainer_gpus = 0, engine_gpus = 0;
  double handover_seconds = 0;  ///< both groups
  double answers_seconds = 0;   ///< of the engine
  double passes_seconds = 0;    ///< of the trainer
  double trainer_waits = 0, engine_waits = 0;
  bool at_once = false;  ///< the engine goes on while the trainer trains
};

/// Seconds of one step; the parts of `step_seconds` add up to it.
struct TimeEstimate {
  double step_seconds = 0;                                             ///< 0: unknown
  std::string_view unknown_because = "the GPU's rates are not known";  ///< if so
  double compute_seconds = 0;  ///< kernels of the forward and backward pass
  double exposed_communication_seconds = 0;
  double exposed_copy_seconds = 0;  ///< to and from the host and NVMe
  double optimizer_seconds = 0;     ///< clipping and update, on the GPU or the host
  double bubble_seconds = 0;        ///< waiting for other pipeline stages
  double idle_seconds = 0;          ///< the GPU waits for the host to start kernels

  double communication_seconds = 0;   ///< hidden and exposed
  double speed_of_light_seconds = 0;  ///< at datasheet rates, everything hidden
  /// The same of kernels alone: forward, backward, step.
  std::array<double, 3> speed_of_light_of_phases{};
  double tokens_per_second = 0;  ///< of all GPUs
  /// Model FLOPs over time and the dense peak: matrix products and attention, of which causal
  /// attention counts half; nothing that is computed again.
  double mfu = 0;
  double hfu = 0;  ///< the same with recomputation
  std::optional<GenerationTime> generation;
  /// Of an iteration of several models: what each phase takes, in their order.
  struct PhaseTime {
    Phase phase = Phase::forward;
    double seconds = 0;
  };
  std::vector<PhaseTime> phases;
  std::optional<GpuGroups> groups;
  Source source = Source::assumed;
  std::string kind;                ///< of steps that `error` is about
  std::optional<StepError> error;  ///< none where no step of this kind was measured
  bool on_usual_host = false;      ///< nobody measured the host, or a step on it

  /// Whether the pace of a host that nobody measured is what most of an error may come from: chosen
  /// as a quarter of the time.
  bool host_decides() const { return on_usual_host && idle_seconds >= step_seconds / 4; }
};

/// Of a program that computes nothing again, whatever it was lowered from.
TimeEstimate estimate_time(const Program& program, const Plan& plan, const TimeRates& rates);

/// `program` was lowered from `passes`.
TimeEstimate estimate_time(const Program& program, const Plan& plan, const Passes& passes,
                           const TimeRates& rates);

/// Says how sure the time of the plan's steps is, and how far off such steps were.
void add_error(TimeEstimate& time, const Plan& plan, const Calibration& calibration);

/// Whether the rates of the plan's GPU are known; else every time is 0.
bool knows_time(const Plan& plan);

/// FLOPs that the program's kernels compute in one step.
double hardware_flops(const Program& program);

}  // namespace shardplan
