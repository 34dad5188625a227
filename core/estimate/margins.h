// How far a run may pass its estimate, in memory and in time: what measured runs of jobs like it
// have shown.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// What decides how closely the simulated allocator follows a real one.
enum class AllocatorRegime : std::uint8_t {
  steady,      ///< a training step whose blocks go in the host's order
  exchanged,   ///< such a one with blocks that other ranks decide about: tokens that a router
               ///< sends here, no two steps as many; what a stage has sent and let go
  streams,     ///< one whose blocks wait for another stream: when they come back is chance
  copies,      ///< such a one that has second shards, of smaller groups, or shards on the host
  offloading,  ///< activations on the host, which hooks send and bring: their blocks wait for
               ///< events
  generation,  ///< caches that grow token by token
  iterations,  ///< several programs in turn: reinforcement and preference training
};
inline constexpr std::array<std::string_view, 7> kRegimeNames{
    "steady", "exchanged", "streams", "copies", "offloading", "generation", "iterations"};

/// Ratios of measured to predicted bytes that at least kMarginLevel of the runs did not pass.
struct Margin {
  std::string framework;  ///< a name of the registry; empty: all that have no margin of their own
  AllocatorRegime regime = AllocatorRegime::steady;
  double least = 1;      ///< of what the allocator reserves with memory to spare: at least
  double reserved = 1;   ///< and at most
  double allocated = 1;  ///< of live tensors, at most
  std::int64_t runs = 0;
};

/// Of runs that must give cached segments back: the memory with which they got by, over the least
/// with which the simulated allocator does. Which blocks pin which segments is chance then.
struct ScarceMargin {
  double least = 1;  ///< with less no run got by
  double most = 1;   ///< with more every run did
  std::int64_t runs = 0;
};

/// How far off predicted steps were from measured ones, of a kind of job.
struct StepError {
  std::string kind;  ///< step_kind's
  std::int64_t runs = 0;
  double mean = 0;     ///< of the absolute errors, over what was measured
  double largest = 0;  ///< signed: above 0 where the prediction was too long
};

/// "single", "deepspeed stage 3"; "generation" and "iteration" whatever the framework.
std::string step_kind(const Plan& plan);

/// nullptr where no step of this kind was measured.
const StepError* step_error_of(const std::vector<StepError>& errors, const Plan& plan);

/// The share of unseen runs that a margin is made to hold for.
inline constexpr double kMarginLevel = 0.98;

AllocatorRegime regime_of(const Plan& plan, const Program& program);

/// The framework's own margin, else the one for all; of a calibration without any: no margin.
const Margin& margin_of(const std::vector<Margin>& margins, std::string_view framework,
                        AllocatorRegime regime);

/// The smallest ratio that may apply to a job of the framework, whatever its regime.
double least_ratio(const std::vector<Margin>& margins, std::string_view framework);

}  // namespace shardplan
