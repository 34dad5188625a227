// DistributedDataParallel's gradient buckets, and what its constructor allocates and frees.
#pragma once

#include "lowering/segments.h"
#include "plan/precision.h"
#include "program/program.h"

namespace shardplan {

/// The second step's forward pass begins with buckets made anew. NCCL's process group holds the old
/// one until a collective is issued after its watchdog, which looks every 100 ms, has seen the
/// old one's done (ProcessGroupNCCL.cpp, shelvesToUnstash_). In a plain loop none is issued before
/// the second backward pass reduces its first bucket. A barrier between the steps may come after
/// the watchdog: then it goes before the forward pass. Where less than 100 ms lie between, it goes
/// with a later bucket. Of 19 runs each had one of the three, to 2.5 %, 13 of them to 0.3.
struct DdpRebuild {
  std::vector<Event> made;  ///< when the second forward pass begins
  std::vector<Event>
      held;  ///< goes by chance (Chance): usually when the second backward pass begins
};

struct BucketOptions {
  std::int64_t cap = 0;  ///< bytes at which a bucket is closed
  Category category = Category::communication_buffers;
  /// Not where DDP looks for unused parameters (reducer.cpp, should_rebuild_buckets).
  bool made_anew = true;
};

/// Appends the buckets as they are from the second step on to the residents, which must hold what
/// the model is built of so far, and writes down how the first ones come to be (Program::build).
/// Sources: torch/nn/parallel/distributed.py, torch/csrc/distributed/c10d/comm.cpp
/// (broadcast_coalesced) and reducer.cpp (compute_bucket_assignment_by_size, rebuild_buckets).
DdpRebuild add_ddp_buckets(Program& program, const Model& model, const ModelRun& run,
                           const Precision& precision, const BucketOptions& options);

}  // namespace shardplan
