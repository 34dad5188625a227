// What DeepSpeed demands of several keys together. Each function reports what it refuses as an
// error and what it silently does otherwise as a warning; where each rule lives in DeepSpeed is
// said beside it. Everything here is seen from the file and its context alone.
#pragma once

#include <span>

#include "load/ds_config/auto_values.h"
#include "load/ds_config/context.h"
#include "load/ds_config/findings.h"
#include "load/ds_config/values.h"

namespace shardplan {

/// fp16, bf16, amp, torch_autocast, data_types, 16-bit masters.
void check_precision_rules(const DsValues& values, DsFindings& findings);

/// zero_optimization, offload, aio, compile, gradient reduction.
void check_zero_rules(const DsValues& values, const DsConfigContext& context, DsFindings& findings);

/// optimizer and scheduler. `autos`: a required argument that could not be resolved here is
/// resolved when the job starts.
void check_optimizer_rules(const DsValues& values, const DsConfigContext& context,
                           std::span<const ResolvedAuto> autos, DsFindings& findings);

/// pipeline, tensor, sequence and expert parallelism, activation checkpointing.
void check_parallel_rules(const DsValues& values, const DsConfigContext& context,
                          DsFindings& findings);

/// Keys that are given, differ from their default and do nothing in this configuration.
void report_ignored_keys(const DsValues& values, DsFindings& findings);

}  // namespace shardplan
