// Rows of data/measurements/serving whose engines ran with loads: their jobs and estimates.
#pragma once

#include <cmath>
#include <string>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::engine_rows {

inline const HardwareCatalog& catalog() {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  return kHardware;
}

/// The engine of a row under one of its loads.
inline Job job_of(const Json& row, const Json& load) {
  Json job = row.at("job");
  job["model"] =
      SHARDPLAN_SOURCE_DIR "/tests/accuracy/measure/cases/" + job.at("model").get<std::string>();
  for (const char* key : {"batch", "prompt_length", "new_tokens"})
    job["workload"][key] = load.at(key);
  job["workload"]["engine"]["requests"] = load.at("batch");
  return load_job(job, "job.json", {.hardware = &catalog()});
}

inline Estimate estimated(const Json& row, const Json& load) {
  const Job job = job_of(row, load);
  return estimate(job.model, job.plan, load_calibration());
}

inline double error(double predicted, const Json& measured) {
  return predicted / measured.get<double>() - 1;
}

/// Errors of one kind.
struct Mean {
  double sum = 0, absolute = 0;
  int count = 0;
  void add(double error) {
    sum += error;
    absolute += std::abs(error);
    ++count;
  }
  double bias() const { return sum / count; }
  double error() const { return absolute / count; }
};

}  // namespace shardplan::engine_rows
