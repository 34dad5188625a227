// What stage 3 decides before its passes run: layouts, gathers, buckets and how gradients travel.
#pragma once

#include "frameworks/deepspeed/buckets.h"
#include "frameworks/deepspeed/secondary.h"
#include "frameworks/deepspeed/stages.h"

namespace shardplan {

struct Stage3 {
  const Model& model;
  const Plan& plan;
  const ModelRun& run;
  const Engine& e;
  const ZeroOptions& zero;
  ShardLayout layout;
  GatherPlan gather;
  SecondaryShards secondary;
  BucketSchedule schedule;
  std::vector<Updated> sub_groups;  ///< what the optimizer takes one after the other
  std::int64_t sub_group;           ///< S: elements of the largest of them
  StateBytes states;                ///< of the optimizer, on one rank
  /// What an optimizer does to whole gradients when a bucket is full (Muon).
  std::int64_t special_temporaries;
  bool offload_optimizer, offload_param;
  Group group;               ///< of one copy of the states
  bool quantized_reduction;  ///< qgZ: in two hops
  QuantizedReduction hops;

  Stage3(const Model& model, const Plan& plan, const ModelRun& run, const Engine& engine);

  DividedModel divided() const { return {model, zero, e, gather, secondary}; }

  /// With overlap_comm, parameters are gathered and gradients reduced on streams of their own
  /// (parameter_offload.py __allgather_stream, stage3.py reduce_and_partition_stream).
  Stream gather_pool() const { return zero.overlap_comm ? Stream::copy : Stream::compute; }
  Stream reduce_pool() const { return zero.overlap_comm ? Stream::communication : Stream::compute; }

  /// Who gathers a set: experts and other parameters are never in one.
  std::int64_t ranks_of(const GatherSet& set) const { return e.ranks_of(first_of(set)); }
  Group group_of(const GatherSet& set) const {
    return ranks_of(set) == e.ranks ? group : Group::expert_data;
  }

  /// Whether the nodes of bitsandbytes' products hold on to a packed weight: MatMul4Bit keeps the
  /// tensor that it read as an attribute, out of reach of what checkpoints take of saved tensors,
  /// and a release only gives the parameter another one (partition_parameters.py free_param). What
  /// was gathered in the forward pass lives as long as the graph.
  bool nodes_hold(ParameterId id) const;
  /// What the last bucket of a backward pass holds at most.
  std::int64_t last_flush() const;
  /// What the flushes behind the first one of a backward pass find at most.
  FlushedBucket later_flush() const;
  /// Temporaries of one flush.
  void flush(ProgramBuilder& b, const FlushedBucket& bucket) const;
  /// Temporaries of the last one where gradients are offloaded.
  void offload_last(ProgramBuilder& b) const;
  /// The traffic of all flushes of a backward pass; `last`: of the step's last one.
  void reduce(ProgramBuilder& b, bool last) const;
  /// Bytes of a frozen parameter's shards, all layers.
  std::int64_t frozen_bytes() const;
  /// Micro-batches that are not all alike: only the first finds no secondary shards, and only the
  /// last sums gradients over MiCS' copies.
  bool distinct_micro_batches() const { return secondary.exist() || plan.copies() > 1; }

 private:
  const Parameter& first_of(const GatherSet& set) const {
    return model.parameters[static_cast<std::size_t>(set.ids.front())];
  }
};

}  // namespace shardplan
