// The pool of memory that the CUDA graphs of a compiled step have to themselves
// (torch/_inductor/cudagraph_trees.py of PyTorch 2.11, after its source).
#pragma once

#include "hardware/cluster.h"
#include "lowering/segments.h"
#include "program/program.h"

namespace shardplan {

/// Forward and backward pass run once in the pool and are recorded there in the second step: what
/// they allocate lies in it, and nothing else can use its memory. Their tapes say so themselves
/// (TapeOptions::pool), and GradientUses of gradients; here a workspace of cuBLAS follows, which is
/// dropped before and made anew there.
/// What is held over from step to step beside it is there when a step begins.
void move_to_graph_pool(Program& program, const Gpu& gpu, const ModelRun& run);

/// What PyTorch counts as allocated in a step that replays the graphs: they ask its allocator for
/// nothing, and tensors that they return do not own their memory.
Program without_graph_pool(const Program& program);

}  // namespace shardplan
