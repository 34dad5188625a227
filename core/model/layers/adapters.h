// What peft's LoRA layers add to the results of the modules that they wrap (peft 0.21).
#pragma once

#include "model/builder.h"

namespace shardplan {

/// `y`, the frozen result of `m` for `x`, and B(A(x)) beside it; with a magnitude of DoRA both
/// scaled row by row.
ValueId add_adapters(Graph& g, const LinearModule& m, ValueId x, ValueId y);

/// `y`, what was looked up, and the rows of A for the same tokens times B.
ValueId add_embedding_adapters(Graph& g, const EmbeddingModule& m, ValueId y);

}  // namespace shardplan
