// The parameters that a micro-batch gathers, between its two passes.
#pragma once

#include <vector>

#include "frameworks/deepspeed/gathered_blocks.h"

namespace shardplan {

/// What both passes of a micro-batch know of the parameters that it gathers. `order` outlives it;
/// `first`: of the step's first micro-batch.
class GatheredTensors {
 public:
  GatheredTensors(const Stage3& z, const std::vector<ModuleUse>& order, bool first);

  void begin_pass(ProgramBuilder& b, bool backward);
  /// A module uses its parameters; returns the calls that have gathered them since their last use.
  std::vector<GatherBucket> use(ProgramBuilder& b, ModuleId id, std::int64_t layer);
  void release(ProgramBuilder& b, ModuleId id, std::int64_t layer);
  void finish(ProgramBuilder& b);

 private:
  void act(ProgramBuilder& b, const std::vector<GatherAction>& actions);
  void use_in_first_step(ProgramBuilder& b, const std::vector<TensorId>& tensors);
  void release_in_first_step(ProgramBuilder& b, const std::vector<TensorId>& tensors);
  void leave_secondary(ProgramBuilder& b, TensorId t);

  const Stage3& z_;
  bool first_;
  ParameterCoordinator coordinator_;
  GatheredBlocks later_steps_, first_step_;
  std::vector<bool> fresh_;          ///< by tensor: gathered, and not used since
  std::vector<std::int32_t> users_;  ///< by tensor: modules at work with it in the first step
};

}  // namespace shardplan
