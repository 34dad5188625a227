// What a run must have in common with the checkpoint that it goes on from.
#pragma once

#include <string>

#include "data/batches.h"
#include "job/engine_job.h"

namespace shardplan::validator {

/// The network, its precision, its division among ranks and the order of its samples. Not in it:
/// how many steps there are and their learning rates, what is checkpointed, the kind of device.
Json identity_of(const EngineJob& job);

/// Of the samples: how many tokens there are, and a number that differs where they do.
Json identity_of(const Tokens& tokens);

/// Throws InputError for the first key in which the job is another than the checkpoint: the file,
/// the key, what was found in the job and what the checkpoint has.
void check_same(const std::string& file, const std::string& key, const Json& saved,
                const Json& wanted);

}  // namespace shardplan::validator
