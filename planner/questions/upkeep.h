// What failures and checkpoints take of a run: the interval between checkpoints, and the share of
// time that trains. docs/explanation/cost.md derives both.
#pragma once

#include <optional>

#include "saving/saved_run.h"

namespace shardplan {

struct Upkeep {
  SavedRun saved;
  double save_seconds = 0, load_seconds = 0;
  double failure_seconds = 0;   ///< mean time between two, of all nodes together
  double restart_seconds = 0;   ///< from a failure until the run loads
  double young_seconds = 0;     ///< of training between two checkpoints, by Young
  double interval_seconds = 0;  ///< the same by Daly, which the goodput is of
  double goodput = 1;           ///< share of the time that trains
};

/// The interval that loses least: sqrt(2 save failure) (Young, 1974).
double young_interval(double save_seconds, double failure_seconds);
/// Its higher order, which holds where saving is not short beside failures (Daly, 2006, (37)).
double daly_interval(double save_seconds, double failure_seconds);

/// Share of the time that trains where failures come at random, at any moment, of saving,
/// restarting and loading too (Daly, 2006, (20)).
double goodput_of(double interval_seconds, double save_seconds, double restart_seconds,
                  double failure_seconds);

/// Nothing where the framework writes no checkpoints, or for what is no training of one model.
std::optional<Upkeep> upkeep_of(const Model& model, const Plan& plan);

}  // namespace shardplan
