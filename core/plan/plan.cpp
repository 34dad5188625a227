#include "plan/plan.h"

#include "frameworks/registry.h"
#include "trainers/description.h"

namespace shardplan {

bool Plan::recomputes_blocks() const {
  if (checkpointing == Checkpointing::selective) return traits_of(*this).selective_runs_blocks;
  return checkpointing != Checkpointing::none;
}

bool Plan::multiplies_in_tf32() const {
  return compile && trainer->compiles_in_tf32 && precision.compute != DType::f16;
}

bool Plan::autocasts_forward() const {
  const UnderTrainer under = traits_of(*this).under_trainer;
  return workload.kind == WorkKind::train && precision.compute != DType::f32 &&
         ((under == UnderTrainer::autocast && trainer->autocasts) ||
          (under == UnderTrainer::policy && trainer->autocasts_policies));
}

bool Plan::syncs_each_batch() const {
  return traits_of(*this).sync_each_batch(*this).value_or(trainer->syncs_each_batch);
}

std::int64_t Plan::shard_ranks() const {
  return traits_of(*this).shard_ranks(*this);
}

bool Plan::prepares_kbit() const {
  // An engine that keeps master weights casts the module to 16 bits, whatever it finds.
  if (!workload.lora || traits_of(*this).keeps_master) return false;
  const bool usual = trainer->prepares_kbit && workload.lora->base != Quantization::none;
  return workload.lora->prepare_kbit.value_or(usual);
}

DType Plan::kept_type() const {
  return prepares_kbit() ? DType::f32 : precision.params;
}

}  // namespace shardplan
