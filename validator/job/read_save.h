// A job's run.save and run.resume.
#pragma once

#include "job/save_options.h"
#include "json/reader.h"

namespace shardplan::validator {

struct EngineJob;

SaveOptions read_save(ObjectReader& run);

/// Throws InputError for checkpoints of what the engine does not save.
void check_save(const EngineJob& job);

}  // namespace shardplan::validator
