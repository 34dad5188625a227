// Gradients of a network whose parameters are divided among ranks, put together from all of them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "validator/engine_testing.h"

namespace shardplan::validator::testing {

/// By unit and parameter of the undivided network; NaN where it is padding.
using Whole = std::map<std::string, std::vector<double>>;

/// Of a first step in fp64, with its loss.
inline Whole whole_gradients(const DecoderSpec& spec, const TestRun& run, double& loss) {
  Whole all;
  std::mutex mutex;
  with_trainers(spec, run, [&](Trainer& trainer, BatchSource& batches) {
    const double mine = trainer.gradients_of(batches);
    const std::lock_guard lock(mutex);
    loss = mine;
    const std::vector<Unit>& units = trainer.network().units();
    for (std::size_t u = 0; u < units.size(); ++u) {
      const double* flat = trainer.gradients().owned(static_cast<int>(u)).as<double>();
      for (const ParameterSpec& p : units[u].parameters) {
        std::vector<double>& g = all[units[u].name + "." + p.name];
        g.resize(static_cast<std::size_t>(p.whole.numel()), NAN);
        for_each_run(p, [&](const Run& r) {
          for (std::int64_t i = 0; i < r.length; ++i) {
            double& there = g[static_cast<std::size_t>(r.whole + i)];
            const double here = flat[p.offset + r.here + i];
            // What ranks have alike they have to the bit.
            if (!std::isnan(there)) {
              EXPECT_EQ(there, here) << units[u].name << "." << p.name;
            }
            there = here;
          }
        });
      }
    }
  });
  return all;
}

}  // namespace shardplan::validator::testing
