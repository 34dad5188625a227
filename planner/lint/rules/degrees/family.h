// Whether degrees of parallelism suit the model and the machine.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::degrees {

inline constexpr const char* kTensorSize = "tensor_parallel.autotp_size";
inline constexpr const char* kSequenceSize = "sequence_parallel_size";
inline constexpr const char* kExpertSize = "expert_parallel.autoep_size";
inline constexpr const char* kStages = "pipeline.stages";

inline constexpr std::string_view kTensor = "deepspeed/module_inject/tp_shard.py get_shard_size";
inline constexpr std::string_view kPipeline = "deepspeed/runtime/pipe/module.py PipelineModule";
inline constexpr std::string_view kUlysses =
    "deepspeed/runtime/sequence_parallel/ulysses_sp.py UlyssesSPAttentionHF.__init__";
inline constexpr std::string_view kExperts =
    "deepspeed/module_inject/auto_ep_config.py validate_autoep_post_detection";

/// Of all stages; 0: not known.
std::int64_t all_ranks(const LintSubject& s);

/// Degrees of the file; 1 where it has none.
std::int64_t tensor_degree(const LintSubject& s);
std::int64_t sequence_degree(const LintSubject& s);

/// Of the model; everything is 0 where it is not known.
ModelFacts facts_of(const LintSubject& s);

/// Heads of keys and values, which tensor parallelism shares out; 0: not known.
std::int64_t shared_heads(const LintSubject& s);

/// "1, 2, 4 or 8"
Said divisors(std::int64_t n);

// The rules, one file each.
LintRule tensor_ranks();
LintRule tensor_heads();
LintRule tensor_uneven();
LintRule tensor_across_nodes();
LintRule pipeline_ranks();
LintRule pipeline_empty();
LintRule pipeline_uneven();
LintRule pipeline_bubble();
LintRule sequence_heads();
LintRule expert_dense();
LintRule expert_count();

// In the order in which they are checked, and listed.
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::degrees
