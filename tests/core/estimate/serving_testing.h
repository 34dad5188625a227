// A job that an engine serves, Llama 3.1 8B unless it says otherwise.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::serving_test {

inline Job served(const Json& workload, const std::string& cluster = "1xH100-SXM5-80GB",
                  const Json& more = Json::object()) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  Json job = {{"model", "llama-3.1-8b"},
              {"cluster", cluster},
              {"workload", Json{{"kind", "inference"},
                                {"prompt_length", 2048},
                                {"new_tokens", 256},
                                {"engine", Json::object()}}}};
  if (!workload.is_null()) job["workload"].update(workload, true);
  if (!more.is_null()) job.update(more);
  return load_job(job, "job.json", {.hardware = &kHardware});
}

inline Estimate estimated(const Job& job) {
  return estimate(job.model, job.plan, Calibration{});
}

}  // namespace shardplan::serving_test
