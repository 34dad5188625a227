// What the model's forward, which calls the segments, has names for: it lives until that returns to
// the head's, which makes logits of the result (transformers 5.17: `inputs_embeds` of a decoder's
// forward, models/llama/modeling_llama.py).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {

struct ModelRun;
struct SegmentRepeat;

/// A pass over the first layer that leaves its input to the model's forward.
TapeRun without_input_freed(TapeRun tape);

/// What frozen embeddings return, once it is told to need a gradient, is a leaf of the graph, whose
/// node holds it until the graph goes (torch/csrc/autograd/functions/accumulate_grad.h):
/// save_on_cpu around the first block frees nothing. Bytes; 0: it is none, or not sent.
std::int64_t leaf_input_bytes(const Plan& plan, const ModelRun& run);

/// Gives the first block a pass of its own where it would free what the embeddings return and the
/// model's forward still names (ModelRun::named_input). A leaf is left alone, and a tensor that a
/// checkpoint gives other data (Megatron's and DeepSpeed's). Compiled code lets go of all names.
void keep_named_input(const Plan& plan, ModelRun& run);

/// The model's forward returns: what it has names for goes.
void drop_names(ProgramBuilder& b, const ModelRun& run, const std::vector<SegmentRepeat>& repeats);

}  // namespace shardplan
