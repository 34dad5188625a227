// What a trainer has where a job that names it says nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/document.h"

namespace shardplan {

struct FilledJob {
  Json job;
  std::vector<std::string> assumed;  ///< what was filled in, for people
};

/// `job` for `world` GPUs, with its trainer's own values in the place of those that are missing. A
/// job that has them all comes back as it is.
FilledJob with_trainer_defaults(Json job, std::int64_t world);

}  // namespace shardplan
