// Single changes to a job of generation or of several models, each said by a few of its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "load/job.h"
#include "questions/changes.h"

namespace shardplan {

/// Changes that make the job need less, of those that apply to it. `written` means `job`. Some may
/// not be possible beside what else the job says: loading it tells.
std::vector<Change> lighter_changes(const Job& job, const Json& written);

/// How much of each GPU an engine takes.
struct EngineShare {
  std::int64_t hundredths = 0;
  std::string_view block;  ///< of the workload
  std::string_view key;    ///< what the engine calls it
  bool alone = false;      ///< it serves: nobody else needs the GPU

  Change changed(std::int64_t to) const;
};

/// Nothing where the job has no engine on its GPUs.
std::optional<EngineShare> engine_share(const Job& job);

}  // namespace shardplan
