// Where the graph of a compiled model breaks at functions that Dynamo is told to leave out.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace shardplan::compiled {

/// Whether it breaks inside of every layer: liger_kernel 0.8.5 reaches its rotation through a
/// function under torch.compiler.disable (backends/dispatch.py). The loop over layers then runs
/// eagerly (torch/_dynamo/symbolic_convert.py leaves out a frame with a break in a loop), and
/// Dynamo compiles what it calls: each layer's pieces, the last norm, the causal mask.
/// LLM.int8() looks for outliers, of which only the values say how many there are
/// (torch/_dynamo/config.py, capture_dynamic_output_shape_ops): its function is left out, and what
/// calls it breaks there, from the linear up to the loop.
bool breaks_in_layers(const Model& model);

/// By operation of such a model, the graph of the segment that it is in; kNone: in none. Before the
/// attention module, in it before the rotation, in it behind it, behind the module; of the last
/// segment all but the loss, whose function stops Dynamo by itself. Around weights of LLM.int8()
/// what runs between two of them; an adapter's branch ends in its module. Empty: the segment is
/// eager.
std::vector<std::int32_t> parts_at_breaks(const Model& model, const Segment& segment);

/// The same where hooks that Dynamo is told to leave out are around every block
/// (torch/distributed/fsdp/_fully_shard/_fsdp_state.py, disable_if_config_true): each block is a
/// graph, and the last segment, which the model's own caller computes behind the loop;
/// `ends_apart`: they are around the last norm and the head too.
std::vector<std::int32_t> parts_at_blocks(const Model& model, const Segment& segment,
                                          bool ends_apart);

/// By operation, the graph of the segment that it is in where such hooks are around every module:
/// each module that calls no other is one, and what runs between two. kNone: in none.
std::vector<std::int32_t> parts_at_modules(const Segment& segment);

}  // namespace shardplan::compiled
