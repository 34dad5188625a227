#include "rollout/sizes.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"

namespace shardplan {
namespace {

/// Engines look at what the driver says that the GPU has. The row of GPUs of any size where it is
/// one that takes less (Gpu::small_passes).
const EngineSizes& sizes_on(const EngineDescription& engine, const Gpu& gpu) {
  const auto found = std::find_if(engine.sizes.begin(), engine.sizes.end(), [&](const auto& row) {
    const std::int64_t bytes = engine.share_is_static ? gpu.capacity.count() : gpu.usable.count();
    return gpu.small_passes && !engine.share_is_static ? row.least_bytes == 0
                                                       : bytes >= row.least_bytes;
  });
  return *found;  // the last row is of all
}

/// sglang/srt/server_args.py, _handle_gpu_memory_settings: in thousandths.
double share_on(const RolloutEngine& engine, const Gpu& gpu) {
  const EngineReserve& r = engine.engine->reserve;
  if (r.bytes == 0) return engine.engine->utilization;
  const auto whole = static_cast<double>(gpu.capacity.count());
  double left =
      static_cast<double>(r.bytes) +
      r.token_bytes * static_cast<double>(std::max(engine.batched_tokens, r.least_tokens)) +
      static_cast<double>(engine.engine->graph_bytes * engine.graph_sequences +
                          r.gpu_bytes * engine.tensor_parallel);
  if (gpu.capacity.count() > r.large_gpu) left = std::max(left, static_cast<double>(r.least_bytes));
  constexpr double kThousandths = 1000;
  return std::round((whole - left) / whole * kThousandths) / kThousandths;
}

}  // namespace

void choose_sizes(RolloutEngine& engine, const Gpu& gpu, EngineCaller caller) {
  const EngineDescription& e = *engine.engine;
  const EngineSizes& row = sizes_on(e, gpu);
  PassSizes chosen = row.of_caller[static_cast<std::size_t>(caller)];
  if (chosen.tokens == 0) chosen = {e.sequences, e.batched_tokens};
  constexpr std::int64_t kMany = 4;
  engine.graph_sequences = engine.tensor_parallel < kMany ? row.graphs : row.graphs_of_many;
  const bool says_sequences = engine.sequences > 0;
  if (!says_sequences) engine.sequences = chosen.sequences;
  if (engine.batched_tokens == 0) {
    engine.batched_tokens = chosen.tokens;
    // Never more than the sequences have in all (arg_utils.py).
    if (engine.model_length > 0)
      engine.batched_tokens =
          std::min(engine.batched_tokens, checked_mul(engine.sequences, engine.model_length));
  }
  if (!says_sequences) engine.sequences = std::min(engine.sequences, engine.batched_tokens);
  if (engine.utilization <= 0) engine.utilization = share_on(engine, gpu);
}

}  // namespace shardplan
