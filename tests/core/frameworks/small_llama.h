// A small Llama whose matrices are easily counted, for tests of what Megatron-LM keeps of it.
#pragma once

#include "frameworks/registry.h"
#include "support/plan_testing.h"

namespace shardplan::small_llama {

inline constexpr std::int64_t kLayers = 4, kHidden = 512, kFfn = 1536, kKeys = 128;
/// Of a block's linears: q and o, k and v, gate, up and down.
inline constexpr std::int64_t kWeights =
    2 * kHidden * kHidden + 2 * kHidden * kKeys + 3 * kHidden * kFfn;

inline Model llama(const Plan& plan, std::int64_t words) {
  return model_of(Json{{"model_type", "llama"},
                       {"hidden_size", kHidden},
                       {"intermediate_size", kFfn},
                       {"num_hidden_layers", kLayers},
                       {"num_attention_heads", 8},
                       {"num_key_value_heads", 2},
                       {"vocab_size", words},
                       {"tie_word_embeddings", false}}
                      .dump(),
                  build_options(plan));
}

}  // namespace shardplan::small_llama
