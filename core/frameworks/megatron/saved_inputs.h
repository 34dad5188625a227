// How recomputed layers of Megatron-LM keep their inputs.
#pragma once

#include "lowering/pipeline/stages.h"
#include "lowering/segments.h"
#include "plan/plan.h"
#include "program/tape.h"

namespace shardplan {

/// Saved inputs in parts. Where sequence parallelism divides them already, or nothing is there to
/// divide or to divide over, the option says nothing.
bool distributes_saved_activations(const Plan& plan);

/// Whether layers are recomputed whole: all of them, or the first ones of each stage
/// (--recompute-granularity full).
bool recomputes_whole_layers(const Plan& plan);

SavedInput megatron_saved_input(const Plan& plan);

/// The first repeat of blocks, or how many repeats there are.
std::size_t blocks_begin(const ModelRun& run, const StageChunk& chunk);

/// With one sample the embedding's result is turned to [sequence, batch, hidden] as a view
/// (language_model_embedding.py), of which the first layer's input is a tensor of its own. Data
/// that the checkpoint gives that one leave the view alone, which GPTModel.forward has a name for:
/// so many bytes. Dropout makes the input anew.
std::int64_t named_embedding_bytes(const ModelRun& run, const Plan& plan, const StageChunk& chunk);

}  // namespace shardplan
