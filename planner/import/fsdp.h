// PyTorch's FSDP as accelerate and transformers configure it.
#pragma once

#include "import/keys.h"

namespace shardplan::importing {

/// How a file spells FSDP's options, and what its program takes where they are left open.
struct FsdpDialect {
  int version;                         ///< without a version of its own
  std::string_view use_orig_params;    ///< FSDP1: "true" or "false"
  std::string_view backward_prefetch;  ///< FSDP1
  std::string_view auto_wrap_policy;
};

/// accelerate 1.15, commands/launch.py and utils/dataclasses.py.
inline constexpr FsdpDialect kAccelerateFsdp{1, "true", "NO_PREFETCH", "NO_WRAP"};
/// transformers 5.17, training_args.py, _process_fsdp_args.
inline constexpr FsdpDialect kTransformersFsdp{2, "true", "NO_PREFETCH", "TRANSFORMER_BASED_WRAP"};

/// Sets the framework from a block of options, with or without "fsdp_" before each; `words` is
/// transformers' `fsdp`: "full_shard auto_wrap offload".
void read_fsdp_block(Key& key, const Json& block, std::string_view words,
                     const FsdpDialect& dialect);

}  // namespace shardplan::importing
