// How a job's blocks are checkpointed: a word or an object.
#pragma once

#include "json/reader.h"
#include "plan/plan.h"

namespace shardplan {

/// Takes over what `job` says under "checkpointing": "full", words with numbers such as
/// "selective_op:2", "blocks:8" (the first eight) and "blocks/2" (each second), each also with
/// "+offload" behind it, or an object. Throws InputError for another type, an unknown name, and
/// numbers that the policy has no use for or wants.
void read_checkpointing(ObjectReader& job, Plan& plan);

/// One such word of a list; `file` and `key` name it in errors.
CheckpointChoice checkpointing_of(const std::string& word, const std::string& file,
                                  const std::string& key);

}  // namespace shardplan
