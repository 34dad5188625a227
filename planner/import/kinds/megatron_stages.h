// How many blocks each pipeline stage has, as Megatron-LM's arguments say it.
#pragma once

#include "import/keys.h"

namespace shardplan::importing {

/// --decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers: a number for one
/// end, the rest in equal parts (transformer_block.py, get_num_layers_to_build). Sets
/// /parallel/stage_layers, in the order of the network.
void read_end_stages(Key& key);

/// --pipeline-model-parallel-layout: "Et*2|(tt|)*5t|L" has two blocks on the first stage
/// (pipeline_parallel_layer_layout.py, parse_str_to_list). Sets /parallel/stage_layers and, for
/// more parts than stages, /parallel/virtual_pipeline.
void read_stage_layout(Key& key);

}  // namespace shardplan::importing
