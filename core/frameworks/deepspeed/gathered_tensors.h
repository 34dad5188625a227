// The parameters that the passes of a micro-batch gather, in the first step and in those after it.
#pragma once

#include <vector>

#include "frameworks/deepspeed/gathered_blocks.h"

namespace shardplan {

/// `schedule` outlives it.
class GatheredTensors {
 public:
  GatheredTensors(const Stage3& z, const GatherSchedule& schedule);

  void begin_pass(ProgramBuilder& b, bool backward);
  /// Up to where the module has its parameters, and what is gathered ahead behind that.
  void use(ProgramBuilder& b, ModuleId id, const ModuleGathers& gathers);
  void gather_ahead(ProgramBuilder& b, const ModuleGathers& gathers);
  void release(ProgramBuilder& b, ModuleId id, const ModuleGathers& gathers);
  void finish(ProgramBuilder& b);

 private:
  void act(ProgramBuilder& b, std::span<const GatherAction> actions);
  void use_in_first_step(ProgramBuilder& b, ModuleId id);
  void release_in_first_step(ProgramBuilder& b, ModuleId id);
  void leave_secondary(ProgramBuilder& b, ParameterId id) const;
  /// Fills `call` with what a module's use gathers in the first step; `frozen`: of its frozen
  /// parameters, where those go in a call of their own.
  void describe(ModuleId id, bool frozen, GatherCall& call) const;
  bool splits_calls() const;

  const Stage3& z_;
  const GatherSchedule& schedule_;
  GatheredBlocks later_steps_, first_step_;
  GatherCall call_;  ///< the one at hand
  bool backward_ = false;
  std::vector<std::int32_t> users_;  ///< by parameter: modules at work with it in the first step
};

}  // namespace shardplan
