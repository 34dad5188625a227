// What makes a job of DeepSpeed need less.
#pragma once

#include "questions/changes.h"

namespace shardplan {

/// Smaller buckets; nothing kept from forward to backward at stage 3.
void deepspeed_changes(std::vector<Change>& changes, const Model& model, const Plan& plan);

/// Optimizer states, and at stage 3 parameters, on the host.
void deepspeed_offloads(std::vector<Change>& changes, const Plan& plan);

}  // namespace shardplan
