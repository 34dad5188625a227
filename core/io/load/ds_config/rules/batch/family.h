// train_batch_size = micro-batch x accumulation x ranks.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "load/ds_config/batch_triangle.h"
#include "load/ds_config/subject.h"

namespace shardplan::config_rules::batch {

inline constexpr std::string_view kBatch =
    "deepspeed/runtime/config.py _set_batch_related_parameters, _batch_assertion";
inline constexpr std::string_view kElastic = "deepspeed/runtime/config.py, deepspeed/elasticity";

/// Elasticity picks the batch at start-up and refuses to be told one.
bool is_elastic(const ConfigSubject& s);

// The rules, one file each.
ConfigRule elastic_pipeline();
ConfigRule elastic_batch();
ConfigRule elastic_batch_ignored();
ConfigRule batch_from_job();
ConfigRule batch_missing();
ConfigRule sequence_parallel_ranks();
ConfigRule batch_triangle();

// In the order in which they are checked, and listed.
std::span<const ConfigRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::config_rules::batch
