// What a model that is compiled whole keeps for its attention's masks from the begin of the forward
// pass to the end of the backward pass, in bytes.
#pragma once

#include <cstdint>

#include "lowering/segments.h"
#include "program/compiled/cuts.h"

namespace shardplan {

/// While Dynamo traces, transformers makes the causal mask that an eager step leaves out
/// (masking_utils.py, _ignore_causal_mask_sdpa): one for all layers of a graph, in the operands'
/// type, and one for those with a sliding window.
std::int64_t causal_mask_bytes(const Model& model, const Plan& plan, const Regime& regime,
                               const compiled::GraphCuts& cuts, const ModelRun& run);

/// Of an encoder with checkpointed blocks: its mask in the operands' type, and the zeros of a safe
/// softmax's rows that see nothing (aten/src/ATen/native/transformers/attention.cpp,
/// _safe_softmax): one tensor of all scores in fp32, which is kept where a later checkpoint reads
/// what the first has made (torch/_functorch/partitioners.py, cleanup_recompute_tags).
std::int64_t safe_softmax_bytes(const Model& model, const Plan& plan, const Regime& regime,
                                const ModelRun& run);

}  // namespace shardplan
