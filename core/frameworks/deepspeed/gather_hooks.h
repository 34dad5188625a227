// Stage 3's hooks around modules: what is fetched, released and left behind, module by module.
#pragma once

#include <vector>

#include "frameworks/deepspeed/gathered_tensors.h"
#include "lowering/gradient_uses.h"

namespace shardplan {

/// Fetches and releases parameters around modules. All repeats are of one iteration.
class GatherHooks {
 public:
  static constexpr bool kOrdersKernels = true;

  /// `gathered`: of the micro-batch, for both passes.
  GatherHooks(const Stage3& z, const std::vector<SegmentRepeat>& repeats, bool backward,
              GatheredTensors& gathered);

  void enter(ProgramBuilder& b, std::size_t k);
  void fetch(ProgramBuilder& b, ModuleId id);
  void release(ProgramBuilder& b, ModuleId id);
  /// The engine's work for the releases and gradients of one iteration.
  void end(ProgramBuilder& b);
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes);
  /// What is in the bucket goes.
  void flush(ProgramBuilder& b);

 private:
  /// What the gathers of a module's parameters take: the host's calls, the traffic and the wait.
  void await_gather(ProgramBuilder& b, const GatherSet& set) const;
  std::int32_t calls_of(const GatherSet& set) const;
  void send(ProgramBuilder& b, const GatherSet& set, std::int64_t payload) const;
  void await_fetch(ProgramBuilder& b, const GatherSet& set) const;
  void free_gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) const;

  const Stage3& z_;
  GatheredTensors& gathered_;
  LayerCounter layers_;
  GradientUses uses_;
  std::int64_t layer_ = 0;
  std::int32_t calls_ = 0;  ///< of the engine, in this iteration
  ReducedBucket bucket_;
  bool of_experts_ = false;  ///< what the bucket has
};

}  // namespace shardplan
