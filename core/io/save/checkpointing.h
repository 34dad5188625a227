// A plan's checkpointing as a job says it.
#pragma once

#include <string>

#include "json/document.h"
#include "plan/plan.h"

namespace shardplan {

/// A word for policies without numbers, else an object.
Json checkpointing_json(const Plan& plan);

/// The same as a word that a flag takes: "blocks:8".
std::string checkpointing_word(const CheckpointChoice& choice);

}  // namespace shardplan
