// What peft's LoRA layers add to the results of the modules that they wrap (peft 0.21).
#pragma once

#include "model/builder.h"

namespace shardplan {

/// `y`, the frozen result of `m` for `x`, and B(A(x)) beside it; with a magnitude of DoRA both
/// scaled row by row.
ValueId add_adapters(Graph& g, const LinearModule& m, ValueId x, ValueId y);

/// `y`, what was looked up, and the rows of A for the same tokens times B.
ValueId add_embedding_adapters(Graph& g, const EmbeddingModule& m, ValueId y);

/// What OFT makes of `x`, rows of `width` numbers, before the frozen layer takes it.
ValueId rotated(Graph& g, const RotationModule& m, std::int64_t width, ValueId x);

/// The weights of experts with B·A added, a tensor as large as they: `count` numbers.
ValueId adapted_weight(Graph& g, const LoraModules& lora, ModuleId module, ParameterId weight,
                       std::int64_t count);

/// The same of a linear whose adapters are in its weight (LinearModule::lora_in_weight), and the
/// product with that.
ValueId adapted_matrix(Graph& g, const LinearModule& m);
ValueId product_with_adapted_weight(Graph& g, const LinearModule& m, ValueId x);

}  // namespace shardplan
