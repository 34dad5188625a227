// Weights that nothing trains: whole on the GPU, or under ZeRO-Inference sharded over the GPUs or
// kept on the host or NVMe, and gathered module by module in every pass (DeepSpeed's
// DeepSpeedZeRoOffload: stage 3 without an optimizer).
#pragma once

#include <optional>
#include <vector>

#include "frameworks/deepspeed/gather.h"
#include "lowering/segments.h"

namespace shardplan {

/// Also the hooks of passes over the model (emit_pass).
class FrozenWeights {
 public:
  static constexpr bool kOrdersKernels = true;

  /// `run`: any pass of the model, for what is gathered ahead.
  FrozenWeights(const Model& model, const Plan& plan, const ModelRun& run);

  bool are_gathered() const { return gather_.has_value(); }

  /// What is there between passes, on the GPU and on the host.
  void add_residents(Program& program) const;

  /// Around a pass: what is gathered ahead of the module that runs.
  void begin_pass(ProgramBuilder& b) const;
  void end_pass(ProgramBuilder& b) const;

  void fetch(ProgramBuilder& b, ModuleId id);
  void release(ProgramBuilder& b, ModuleId id);

 private:
  std::int64_t missing_bytes(ModuleId id) const;
  /// The most that is gathered, beside the module that runs.
  std::int64_t most_ahead(const ModelRun& run) const;

  const Model& model_;
  const Plan& plan_;
  Engine engine_;
  std::optional<GatherPlan> gather_;  ///< nothing: the weights are whole
  std::int64_t ahead_ = 0;            ///< bytes gathered beside the module that runs, at most
  std::vector<std::int64_t> held_;    ///< by module
};

}  // namespace shardplan
