#include "lowering/inference/workspace.h"

#include <algorithm>

#include "base/checked.h"
#include "base/units.h"

namespace shardplan {
namespace {

/// Heads are padded for the fused attention.
std::int64_t padded_width(std::int64_t width) {
  if (width > 128) return width;
  return width <= 32 ? 32 : width <= 64 ? 64 : 128;
}

}  // namespace

InferenceWorkspace deepspeed_workspace(const ModelFacts& model, std::int64_t batch,
                                       std::int64_t most, std::int64_t tensor_parallel, DType type,
                                       std::int64_t free) {
  const std::int64_t heads = std::max<std::int64_t>(1, model.attention_heads);
  const std::int64_t width = checked_mul(heads, padded_width(model.hidden / heads));
  // Elements for each token of the longest sequence.
  const std::int64_t activations = checked_mul(10 * width, batch);
  const std::int64_t scores = checked_mul(checked_mul(batch, heads / tensor_parallel), most);
  const std::int64_t cache =
      checked_mul(checked_mul(model.layers, batch), 2 * (width / tensor_parallel));
  const std::int64_t each = checked_mul(activations + scores + cache, size_of(type));
  const std::int64_t reserve = scores + (free > kGiB ? 500 : 100) * kMiB;
  const std::int64_t tokens = std::clamp((free - reserve) / each, std::int64_t{0}, most);
  return {checked_mul(each, tokens), tokens};
}

}  // namespace shardplan
