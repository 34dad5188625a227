// The network that Megatron-LM's arguments describe, as a configuration of transformers' classes.
#pragma once

#include "import/document.h"
#include "import/recipe.h"

namespace shardplan::importing {

/// `arguments` by name, "num_layers". Throws InputError naming the argument of what no class has.
Json megatron_network(const Document& arguments);

/// The words of the tokenizer: --vocab-size, or what its type or its model's name tell; 0 where
/// nothing does.
std::int64_t megatron_vocabulary(const Document& arguments);

}  // namespace shardplan::importing
