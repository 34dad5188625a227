// Stage 3's gathered parameters: which are persistent, and what a fetch costs.
#pragma once

#include <cstdint>
#include <vector>

#include "frameworks/deepspeed/engine.h"
#include "frameworks/deepspeed/quantize.h"
#include "lowering/segments.h"

namespace shardplan {

/// Parameters that one call gathers, and from whom.
struct GatherSet {
  std::vector<ParameterId> ids;  ///< empty: nothing to gather
  bool stored = false;           ///< quantized at rest (zero_quantized_nontrainable_weights)
  bool secondary = false;        ///< from the secondary shards of hpZ
};

/// Bytes of one call, in the order in which they come and go.
struct GatherBytes {
  std::int64_t payload = 0;   ///< of the collective's buffers on every rank
  std::int64_t received = 0;  ///< allocated for it, and kept until modules have waited for all
  std::int64_t early = 0;     ///< allocated for it, and gone when it is widened
  std::int64_t copies = 0;    ///< the shards put together and cast for the quantizer
  std::int64_t own = 0;       ///< this rank's quantized part, until the call is done
  std::int64_t widened = 0;   ///< allocated when it has arrived, and kept the same
  bool each_widened = false;  ///< the parameters' own tensors are made then, not before
  std::int64_t cast = 0;      ///< a second copy of the largest tensor while it is cast back
  std::int64_t moved = 0;     ///< read and written by the kernels that widen
};

class GatherPlan {
 public:
  GatherPlan(const Model& model, const Plan& plan, const ModelRun& run, const Engine& engine);

  bool persistent(ParameterId id) const { return persistent_[static_cast<std::size_t>(id)]; }
  /// Padded bytes of one parameter when gathered.
  std::int64_t gathered_bytes(ParameterId id) const;
  /// Full copies of all persistent parameters.
  std::int64_t persistent_bytes() const { return persistent_bytes_; }
  /// A fetch of several tensors at once keeps its flat buffer beside the copies.
  std::int64_t coalesced_factor() const { return factor_; }
  GatherBytes bytes_of(const GatherSet& set) const;
  /// Elements of this rank's shard of a parameter, or of its secondary one.
  std::int64_t shard_of(ParameterId id, bool secondary) const;
  bool gathers() const { return gathers_; }

  /// A module whose outputs need no gradient (frozen embeddings) is not fetched in backward.
  bool used_in_backward(ModuleId id) const { return backward_[static_cast<std::size_t>(id)]; }

  bool prefetches() const { return prefetches_; }

 private:
  void mark_persistent(std::int64_t threshold, std::int64_t most, const std::vector<bool>& fetched);
  GatherBytes quantized(const GatherSet& set) const;

  const Model& model_;
  const Engine& engine_;
  DType type_ = DType::bf16;          ///< of the parameters
  bool quantizes_ = false;            ///< qwZ
  std::int64_t secondary_ranks_ = 1;  ///< hpZ
  bool gathers_ = false;
  std::int64_t factor_ = 1;
  std::vector<bool> persistent_;
  std::int64_t persistent_bytes_ = 0;
  std::vector<bool> backward_;  ///< by module
  bool prefetches_ = false;
};

}  // namespace shardplan
