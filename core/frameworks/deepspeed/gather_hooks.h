// Stage 3's hooks around modules: what is fetched, released and left behind, module by module.
#pragma once

#include <vector>

#include "frameworks/deepspeed/stage3_plan.h"
#include "lowering/gradient_uses.h"

namespace shardplan {

/// Where a pass stands in its step.
struct PassPlace {
  bool backward = false;
  bool first = true;  ///< of the first micro-batch
};

/// Fetches and releases parameters around modules. The first step records their order
/// (partitioned_param_coordinator.py reset_step): nothing is fetched ahead in it, and nothing stays
/// over the turn. What is gathered is tracked for the repeat
/// that runs: the parameters of a repeated segment belong to it alone.
class GatherHooks {
 public:
  static constexpr bool kOrdersKernels = true;

  /// `divided`: by parameter, whether its secondary shard exists; outlives the passes of a
  /// micro-batch.
  GatherHooks(const Stage3& z, const std::vector<SegmentRepeat>& repeats, PassPlace place,
              std::vector<bool>& divided);

  /// Around the forward pass: what the prefetcher holds ahead of the running module.
  void prefetch(ProgramBuilder& b);
  void end_prefetch(ProgramBuilder& b);
  void enter(ProgramBuilder& b, std::size_t k);
  /// The first layer's backward has no use for modules that only pass gradients on to its input:
  /// what the forward pass kept of them is released.
  void enter_first(ProgramBuilder& b, const TapeRun& layer);
  /// Fetches the module that the backward pass needs first, unless the forward pass kept it.
  void fetch_first(ProgramBuilder& b);
  void fetch(ProgramBuilder& b, ModuleId id);
  void release(ProgramBuilder& b, ModuleId id);
  /// The engine's work for the releases and gradients of one iteration.
  void end(ProgramBuilder& b);
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes);

 private:
  bool stays(ModuleId id) const;
  /// What the forward pass kept, as it was gathered.
  void mark_gathered(ModuleId id);
  /// The parameters of a module that one call gathers; trainable and frozen ones differ where some
  /// are quantized or have secondary shards. `outdated`: those of trainable ones are not there.
  GatherSet set_of(ModuleId id, bool frozen, bool outdated) const;
  bool splits_sets() const;
  void fetch_set(ProgramBuilder& b, const GatherSet& set);
  /// What the engine takes to gather it and let it go.
  std::int32_t calls_of(const GatherSet& set) const;
  std::int32_t flush_calls(ParameterId id);
  /// Bytes of each shard that a gather copies from the host to the GPU first.
  std::vector<std::int64_t> brought_shards(const GatherSet& set) const;
  void send(ProgramBuilder& b, const GatherSet& set, std::int64_t payload);
  /// Notes what the parameters of a set hold until their release: each its own, the first what they
  /// share.
  void hold(const GatherSet& set, const GatherBytes& bytes);
  void alloc_each(ProgramBuilder& b, const GatherSet& set) const;
  /// The host waits where gathers are behind by more than DeepSpeed lets them.
  void await_fetch(ProgramBuilder& b, const GatherSet& set) const;
  void free_gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) const;
  void release_parameter(ProgramBuilder& b, ParameterId id);
  /// `own`: its tensor goes, beside what it shares with its set.
  std::vector<Event> release_events(ParameterId id, bool own) const;
  /// The first step gathers again what others kept over the turn.
  void gather_in_first_step(ProgramBuilder& b, const GatherSet& set);

  const Stage3& z_;
  const std::vector<SegmentRepeat>& repeats_;
  PassPlace place_;
  std::vector<bool>& divided_;
  std::vector<std::int64_t> gathered_;             ///< bytes held, by parameter
  std::vector<std::vector<std::int64_t>> shared_;  ///< blocks of its set, by its first parameter
  std::vector<bool> kept_;                         ///< over the turn, by parameter of this repeat
  std::vector<bool> waits_;  ///< by parameter: kept, and gathered in the first step when it is used
  std::vector<std::int32_t> holders_;  ///< modules that hold a parameter over the turn, still
  GradientUses uses_;
  std::vector<std::int64_t> reached_;
  std::vector<std::int32_t> pending_;
  std::int64_t prefetched_ = 0;
  std::size_t repeat_ = 0;
  std::int32_t calls_ = 0;   ///< of the engine, in this iteration
  std::int64_t bucket_ = 0;  ///< elements of gradients in it
  bool all_kept_ = false;
  const GatherPlan::Kept* edge_ = nullptr;
};

}  // namespace shardplan
