// Which machine for which model and method: every combination, at the largest micro-batch that
// fits.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "hardware/catalog.h"
#include "json/document.h"
#include "load/calibration.h"
#include "questions/cost.h"

namespace shardplan {

struct MachineQuestion {
  std::vector<std::string> models, methods, machines;
  Json job;  ///< fields of every job; one that says a micro-batch keeps it
  std::string directory;
  CostTerms terms;
};

struct MachineAnswer {
  std::string model, method, machine;  ///< as asked
  std::string error;                   ///< "": it was estimated
  std::string name;                    ///< of the model, as reports say it
  std::int64_t parameters = 0;
  Plan plan;          ///< with that micro-batch
  Estimate estimate;  ///< of it; of one sample where nothing fits
  Cost cost;
};

/// Those with the same model and method stand together, in the order asked, whatever the threads
/// (0: as many as the machine has). A job that cannot be estimated is an answer like any other.
std::vector<MachineAnswer> ask_machines(const MachineQuestion& question,
                                        const HardwareCatalog& hardware,
                                        const Calibration& calibration, unsigned threads);

}  // namespace shardplan
