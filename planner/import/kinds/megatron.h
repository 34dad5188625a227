// Megatron-LM's arguments as other programs pass them on.
#pragma once

#include "import/keys.h"

namespace shardplan::importing {

/// Everything but the network: batch, precision, degrees, recomputation, the optimizer. `arguments`
/// by name, "tensor_model_parallel_size"; `others` has keys of the program that passes them on.
void read_megatron_arguments(const Document& arguments, Recipe& recipe,
                             const KeyTable* others = nullptr);

}  // namespace shardplan::importing
