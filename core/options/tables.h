// Every table of options but those of frameworks, which are in their traits.
#pragma once

#include <vector>

#include "lowering/rlhf/roles.h"
#include "options/option.h"
#include "plan/plan.h"

namespace shardplan {

// A job's own keys, and the objects in it.
const OptionTable<Plan>& job_option_table();           ///< model, cluster, attention, ...
const OptionTable<Workload>& kind_option_table();      ///< workload, of every kind
const OptionTable<Workload>& training_table();         ///< workload, kind train
const OptionTable<Workload>& lora_table();             ///< workload.lora
const OptionTable<Workload>& generation_table();       ///< workload, kind inference
const OptionTable<Rlhf>& rlhf_table();                 ///< workload, kind rlhf
const OptionTable<HybridEngine>& hybrid_table();       ///< workload.hybrid_engine, kind rlhf
const OptionTable<RolloutEngine>& rollout_table();     ///< workload.rollout, kind rlhf
const OptionTable<RolloutEngine>& serving_table();     ///< workload.engine, kind inference
const OptionTable<Plan>& parallel_table();             ///< parallel
const OptionTable<Plan>& preset_option_table();        ///< precision, a preset or an object
const OptionTable<Precision>& precision_table();       ///< precision as an object
const OptionTable<Cluster>& cluster_option_table();    ///< cluster as an object
const OptionTable<Plan>& compile_table();              ///< compile as an object
const OptionTable<Plan>& checkpointing_table();        ///< checkpointing as an object
const OptionTable<Optimizer>& optimizer_table();       ///< optimizer as an object
const OptionTable<Framework>& framework_name_table();  ///< framework.name

/// All options of all jobs, in the order in which a command line says them.
std::vector<OptionGroup> all_option_groups();

}  // namespace shardplan
