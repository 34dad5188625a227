// When a gradient bucket is flushed during the backward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "frameworks/deepspeed/layout.h"
#include "lowering/segments.h"

namespace shardplan {

/// A place in the backward pass: iteration `iteration` (counted as backward runs) of `segment`.
struct BackwardPlace {
  std::size_t segment = 0;
  std::int64_t iteration = 0;
  ParameterId before = kNone;  ///< the gradient that does not fit any more
};

/// What a flush finds in the bucket.
struct FlushedBucket {
  std::int64_t elements = 0;
  std::int64_t tensors = 0;
};

struct BucketSchedule {
  /// The first flush that happens while the backward pass runs: where most activations are alive.
  /// Absent when everything fits in one bucket that is flushed after the backward pass.
  std::optional<BackwardPlace> first_flush;
  /// The first gradient of all: where the bucket comes into being.
  std::optional<BackwardPlace> first_gradient;
  FlushedBucket first;             ///< at the first flush
  FlushedBucket last;              ///< at the one after the backward pass
  FlushedBucket fullest;           ///< of several tensors, at any
  std::int64_t most_elements = 0;  ///< at any
  /// The flush that first carries a gradient of this rank's partition; absent: after backward.
  std::optional<BackwardPlace> first_own;
  /// The first flush within the backward pass that goes to several ranks, and its elements.
  std::optional<BackwardPlace> first_divided;
  std::int64_t divided_elements = 0;
  /// Of the flush after the backward pass, where it goes to several ranks.
  std::int64_t last_divided_elements = 0;
  std::int64_t flushes = 0;  ///< in all, the last one included
};

/// Walks the gradients in the order of the backward pass and fills buckets of `capacity` elements.
/// A tensor that is larger than the bucket is reduced from its own storage. `owned` tells which
/// repetitions of a parameter this rank's partition has a part of. A tied parameter's gradient
/// counts once, at its last use. Takes as long as there are flushes, not layers.
/// `experts_apart`: a bucket that has experts has nothing else, and is flushed when they end.
/// `divides` tells whether the gradients from the first to the second number of elements, counted
/// as they come, go to several ranks.
BucketSchedule schedule_buckets(
    const Model& model, const ModelRun& run, std::int64_t capacity,
    const std::function<LayerRange(ParameterId)>& owned, bool experts_apart = false,
    const std::function<bool(std::int64_t, std::int64_t)>& divides = {});

/// By parameter: its last gradient is added to the others in a tensor that is neither (autograd's
/// engine, where the other one is a view), which hooks get.
std::vector<bool> summed_apart(const Model& model, const ModelRun& run);

/// The backward repeats of `run`, cut so that each place in `cuts` is in a repeat of one.
std::vector<SegmentRepeat> cut_backward(const ModelRun& run,
                                        const std::vector<std::optional<BackwardPlace>>& cuts);

}  // namespace shardplan
