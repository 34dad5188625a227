// Stage 3's hooks around modules: what is fetched, released and left behind, module by module.
#pragma once

#include <vector>

#include "frameworks/deepspeed/gathered_tensors.h"
#include "lowering/gradient_uses.h"

namespace shardplan {

/// Fetches and releases parameters around modules, as `schedule` says; `gathered`: of the
/// micro-batch, for both passes.
class GatherHooks {
 public:
  static constexpr bool kOrdersKernels = true;

  GatherHooks(const Stage3& z, const GatherSchedule& schedule, bool backward,
              GatheredTensors& gathered);

  void enter(ProgramBuilder& b, std::size_t k);
  void begin(ProgramBuilder& b);
  void fetch(ProgramBuilder& b, ModuleId id);
  void release(ProgramBuilder& b, ModuleId id);
  /// The engine's work for the releases and gradients of one iteration.
  void end(ProgramBuilder& b);
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes);

 private:
  /// What the gathers of a module's parameters take: the host's calls, the traffic and the wait.
  void await_gather(ProgramBuilder& b, const GatherSet& set) const;
  std::int32_t calls_of(const GatherSet& set) const;
  void send(ProgramBuilder& b, const GatherSet& set, std::int64_t payload) const;
  void await_fetch(ProgramBuilder& b, const GatherSet& set) const;
  void free_gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) const;

  std::int32_t flush_calls(ParameterId id);

  const Stage3& z_;
  const GatherSchedule& schedule_;
  bool backward_;
  GatheredTensors& gathered_;
  GradientUses uses_;
  std::vector<std::int64_t> reached_;  ///< iterations, by segment
  std::size_t repeat_ = 0;
  std::size_t event_ = 0;    ///< the next of the schedule
  std::int32_t calls_ = 0;   ///< of the engine, in this iteration
  std::int64_t bucket_ = 0;  ///< elements of gradients in it
};

}  // namespace shardplan
