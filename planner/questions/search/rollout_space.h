// Ways to run an iteration of reinforcement learning on the same GPUs: how a trainer and the engine
// that answers share them, and how the trainer's batch is cut. All train on as many samples.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "json/document.h"
#include "load/job.h"
#include "questions/changes.h"

namespace shardplan {

/// How trainer and engine share the GPUs.
struct GpuSharing {
  const PlaceTraits* place = nullptr;         ///< null: no engine, the trainer's own model answers
  std::int64_t nodes = 1, gpus_per_node = 1;  ///< the trainer's
  std::int64_t engine_gpus = 0;               ///< of its own
  std::int64_t behind = 0;                    ///< updates that answers may be behind
  bool further_behind = false;                ///< than the job says: it learns from other answers
  std::int64_t sleep = 0;                     ///< level
  Idle actor = Idle::gpu;                     ///< what of the actor is on the host meanwhile
};

/// A way to run it, but for the share of a GPU that the engine takes.
struct RolloutPoint {
  GpuSharing sharing;
  std::int64_t micro = 1, accumulation = 1;
  std::int64_t tensor = 1;  ///< GPUs of an engine
};

class RolloutSpace {
 public:
  /// `written` means `job`, which is of kind rlhf. Axes that are not empty are searched alone.
  RolloutSpace(const Job& job, const Json& written, std::vector<std::int64_t> micro_batches,
               std::vector<std::int64_t> degrees);

  /// Those that the GPUs can be divided into, the job's own among them. A job without an engine
  /// could have one, but for DeepSpeed-Chat's, whose trainer takes none.
  std::vector<GpuSharing> sharings() const;
  /// Every batch and degree under it, the largest micro-batches first.
  std::vector<RolloutPoint> points(const GpuSharing& sharing) const;
  /// Hundredths of a GPU that an engine takes which nobody shares its GPUs with; nothing of others.
  std::optional<std::int64_t> own_share(const GpuSharing& sharing) const;
  /// The fields that say it, with so many hundredths of a GPU for the engine.
  std::vector<FieldEdit> fields(const RolloutPoint& point, std::int64_t hundredths) const;

 private:
  void add_places(std::vector<GpuSharing>& all, const PlaceTraits& place) const;
  std::int64_t samples_of_rank(const GpuSharing& sharing) const;  ///< 0: they cannot be shared out
  bool in_machines() const { return nodes_ == 1; }                ///< GPUs are moved, not machines

  const Job& job_;
  const Json& written_;
  RolloutEngine engine_;  ///< the job's own, or what it could have
  std::vector<std::int64_t> micro_batches_, degrees_;
  std::int64_t nodes_ = 1, gpus_per_node_ = 1;  ///< of trainer and engine together
};

}  // namespace shardplan
