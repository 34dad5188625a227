// What a workload of several models cannot be, once all of them are read.
#pragma once

#include <cstdint>

#include "json/reader.h"
#include "load/job.h"

namespace shardplan {

/// What of an engine is not counted, among what is assumed.
void note_engine(Job& job);

/// A prompt has its images. `work`: the workload.
void check_prompt(const ObjectReader& work, const Job& actor, std::int64_t prompt);

/// Programs that start out from different processes cannot be run in turn.
void check_frameworks(const ObjectReader& work, const Rlhf& rlhf);

}  // namespace shardplan
