// Pipeline, tensor, sequence and expert parallelism; DeepSpeed's activation checkpointing.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "load/ds_config/subject.h"

namespace shardplan::config_rules::parallel {

inline constexpr std::string_view kPipeline = "deepspeed/runtime/pipe/engine.py __init__";
inline constexpr std::string_view kTensor =
    "deepspeed/runtime/engine.py _configure_tensor_parallel, _apply_autotp_partitioning";
inline constexpr std::string_view kExperts = "deepspeed/module_inject/auto_ep_config.py";
inline constexpr std::string_view kCheckpointing =
    "deepspeed/runtime/activation_checkpointing/checkpointing.py configure";

inline constexpr std::string_view kPipelineStages =
    "a PipelineModule works only with ZeRO stages 0 and 1";
inline constexpr const char* kContiguous =
    "activation_checkpointing.contiguous_memory_optimization";

/// tensor_parallel.autotp_size; 0 where the block is off or not there.
std::int64_t tensor_ranks(const DsValues& values);
std::int64_t sequence_ranks(const DsValues& values);

// The rules, one file each.
ConfigRule pipeline_stage();
ConfigRule pipeline_block_stage();
ConfigRule pipeline_overlap();
ConfigRule autotp_off();
ConfigRule autotp_sizes();
ConfigRule autotp_sequence();
ConfigRule autotp_stage_3();
ConfigRule expert_load_balance();
ConfigRule expert_ranks();
ConfigRule expert_stage_3();
ConfigRule contiguous_without_partition();
ConfigRule contiguous_without_number();
ConfigRule vocabulary_size();

// In the order in which they are checked, and listed.
std::span<const ConfigRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::config_rules::parallel
