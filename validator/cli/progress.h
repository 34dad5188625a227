// What a run says to a program that watches it: one JSON object a line, told by its "event".
//   start  what runs, on how many ranks, and what was predicted
//   step   each step: loss, norm, learning rate, seconds, bytes of the rank that tells
//   saved  a checkpoint that is whole: its folder, bytes and seconds
//   done   what --format json prints
//   error  why it ended, and the exit code
#pragma once

#include <string>

#include "estimate/estimate.h"
#include "job/engine_job.h"
#include "launch/run.h"

namespace shardplan::validator {

/// Bytes are of the fullest rank; seconds are of a step on the cluster that the job names, and
/// missing on the host, where no prediction is of.
Json start_event(const EngineJob& job, const Estimate& predicted);

/// `step` counts from 1. A loss that is no number is null.
Json step_event(const EngineJob& job, const StepProgress& progress);

Json saved_event(const SaveReport& save);

Json error_event(const std::string& message, int exit_code);

/// Prints an event as a line of its own, at once.
void print_event(const Json& event);

}  // namespace shardplan::validator
