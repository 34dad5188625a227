// zero_optimization: reduction, offload, shard groups, DeepCompile.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "load/ds_config/subject.h"

namespace shardplan::config_rules::zero {

inline constexpr std::string_view kInit =
    "deepspeed/runtime/zero/stage_1_and_2.py and stage3.py __init__";
inline constexpr std::string_view kGroups =
    "deepspeed/utils/groups.py _create_zero_param_parallel_group, deepspeed/runtime/zero/mics.py";
inline constexpr std::string_view kCompile =
    "deepspeed/compile/init_z3.py, deepspeed/runtime/engine.py";

inline constexpr const char* kStage = "zero_optimization.stage";
inline constexpr const char* kReduceScatter = "zero_optimization.reduce_scatter";
inline constexpr const char* kAllgatherBucket = "zero_optimization.allgather_bucket_size";
inline constexpr const char* kRatio = "zero_optimization.offload_optimizer.ratio";
inline constexpr const char* kOptimizerDevice = "zero_optimization.offload_optimizer.device";
inline constexpr const char* kBufferCount = "zero_optimization.offload_optimizer.buffer_count";
inline constexpr const char* kQuantizedGradients = "zero_optimization.zero_quantized_gradients";
inline constexpr const char* kHpz = "zero_optimization.zero_hpz_partition_size";
inline constexpr const char* kMics = "zero_optimization.mics_shard_size";

/// "none", "cpu" or "nvme": of the block offload_optimizer or offload_param.
std::string device_of(const DsValues& values, const std::string& block);

/// Secondary shards and MiCS are read at stage 3 alone. 0: the key is off.
std::int64_t hpz_size(const DsValues& values);
std::int64_t mics_size(const DsValues& values);

/// Copies of the shard groups of MiCS, where its ranks divide the world; otherwise 0.
std::int64_t mics_replicas(const ConfigSubject& s);

bool compiles_deeply(const DsValues& values);

// The rules, one file each.
ConfigRule zero_block_missing();
ConfigRule zero_block_wanted();
ConfigRule legacy_stage1();
ConfigRule elastic_checkpoint();
ConfigRule predivide_with_reduce_scatter();
ConfigRule prescale_with_reduce_scatter();
ConfigRule sum_reduction();
ConfigRule odd_allgather_bucket();
ConfigRule quantized_gradients_reduction();
ConfigRule partial_offload_stage();
ConfigRule nvme_below_stage_3();
ConfigRule nvme_path_missing();
ConfigRule nvme_buffer_count();
ConfigRule hpz_nvme();
ConfigRule mics_ignores();
ConfigRule quantized_gradients_type();
ConfigRule hpz_ranks();
ConfigRule mics_ranks();
ConfigRule mics_offload();
ConfigRule mics_copies();
ConfigRule deepcompile_without_zero();
ConfigRule deepcompile_offloads();
ConfigRule deepcompile_two_offloads();
ConfigRule deepcompile_offload_optimizer();
ConfigRule unmanaged_accumulation();

// In the order in which they are checked, and listed.
std::span<const ConfigRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::config_rules::zero
