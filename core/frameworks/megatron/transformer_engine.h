// What Transformer Engine and PyTorch keep on a GPU beside Megatron-LM's own buffers, from the
// first step on.
#pragma once

#include "lowering/pipeline/stages.h"
#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// Whether exchanges run in parts beside their products: --tp-comm-overlap, where sequence
/// parallelism has any to cut.
bool cuts_exchanges(const Plan& plan);

/// What --tp-comm-overlap keeps beside PyTorch's allocator: a micro-batch's hidden states, whole,
/// for each of a block's products whose exchange may run in parts (module/base.py, initialize_ub).
std::int64_t userbuffer_bytes(const Model& model, const Plan& plan);

/// Whether a stage's passes call torch.matmul: for logits, and in unfused attention.
bool multiplies_itself(const Plan& plan, bool logits);

/// Memory that cuBLAS is given to work in: Transformer Engine's for its products, four more for
/// products of several experts at once (transformer_engine/pytorch/cpp_extensions/gemm.py), and
/// PyTorch's own two where a stage calls torch.matmul.
void add_product_workspaces(ProgramBuilder& b, const Model& own, const Plan& plan, bool logits);

/// Weights of blocks in fewer bits, in both layouts, which their modules keep from the first
/// micro-batch on (module/base.py, get_weight_workspace; cache_name "weight").
void add_cast_weights(ProgramBuilder& b, const Model& own, const Plan& plan);

}  // namespace shardplan
