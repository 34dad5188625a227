// What stages 1 and 2 decide before their passes run: layouts, buckets and how gradients travel
// (deepspeed/runtime/zero/stage_1_and_2.py).
#pragma once

#include <cstdint>
#include <vector>

#include "frameworks/deepspeed/buckets.h"
#include "frameworks/deepspeed/expert_groups.h"
#include "frameworks/deepspeed/flat_states.h"
#include "frameworks/deepspeed/gradient_work.h"

namespace shardplan {

struct Stage12 {
  const Model& model;
  const Plan& plan;
  const ModelRun& run;
  const Engine& e;
  const ZeroOptions& zero;
  std::int64_t rank;
  FlatLayout layout;
  ExpertGroups experts;
  BucketSchedule schedule;
  std::int64_t touched;  ///< F
  std::int64_t tensors;  ///< that train; at least one
  bool offload;
  /// Stage 1 with another accumulation type than the model's: param.grad_accum, whole.
  bool accumulates_whole;
  /// Hooks run when the backward pass is over: the model is one compiled graph.
  bool at_once;
  std::int64_t bucket_bytes;    ///< of an IPG buffer
  std::int64_t bucket_buffers;  ///< one per communication dtype, two with overlap

  Stage12(const Model& model, const Plan& plan, const ModelRun& run, const Engine& engine,
          std::int64_t rank);

  /// Each is an allocation of its own (setup_buckets).
  void make_buckets(ProgramBuilder& b) const {
    for (std::int64_t i = 0; i < bucket_buffers; ++i)
      b.alloc(Category::communication_buffers, bucket_bytes);
  }
  void drop_buckets(ProgramBuilder& b) const {
    for (std::int64_t i = 0; i < bucket_buffers; ++i)
      b.free(Category::communication_buffers, bucket_bytes);
  }

  /// Experts are taken for this rank's from the first layer on: of each group it has a part.
  LayerRange owned_layers(ParameterId id) const;

  /// Hooks of gradients that one flush takes as long as.
  static constexpr double kFlushHooks = 7;
  /// What the host does for so many gradients, in the time of one's hook: the hooks, and these
  /// gradients' share of the flushes, each of which takes it as long as seven (0.45 ms on a host
  /// whose hooks took 0.06).
  std::int32_t host_calls(std::int32_t gradients) const;

  /// What the optimizer updates, group by group.
  std::vector<Updated> updated() const;
  /// The tensors of this rank's part, about.
  GradientList own() const { return {std::max<std::int64_t>(1, tensors / e.ranks), partition()}; }
  /// What gradients do on the GPU as they come: copies into the bucket and, but for those that the
  /// last flush sends, what flushes do.
  void take(ProgramBuilder& b, const GradientList& gradients) const;
  /// What the last flush does.
  void take_last(ProgramBuilder& b) const;
  std::int64_t whole_bytes() const {  // of all gradients, as autograd makes them
    return trainable_bytes(model, plan.precision.params, plan.precision.params);
  }
  std::int64_t flushes() const { return std::max<std::int64_t>(1, schedule.flushes); }
  /// P, of all optimizer groups.
  std::int64_t partition() const { return layout.partition() + experts.partition(); }
  /// What the step takes up at once: one optimizer group's.
  std::int64_t largest_partition() const {
    return std::max(layout.partition(), experts.largest_partition());
  }
  std::int64_t largest_fragment() const {
    return std::max(layout.largest_fragment(rank), experts.largest_fragment(rank));
  }

  /// With overlap_comm, gradients are reduced and kept on a stream of their own (average_tensor,
  /// reduce_ipg_grads: reduction_stream).
  Stream reduce_pool() const { return zero.overlap_comm ? Stream::communication : Stream::compute; }

  /// Temporaries of one flush of `elements`: the slices flattened (a view when there is only one),
  /// and a copy in the communication dtype.
  void flush(ProgramBuilder& b, std::int64_t elements) const;

  /// The buffer for gradients of tensors that touch this rank's partition appears at the first
  /// flush that carries one. With offload they go to the host, cast to fp32 on the way.
  void keep_own(ProgramBuilder& b) const;

  /// With offload, gradients wait on the host for the next micro-batch's: they come back to be
  /// added to and go again; the last sum goes in fp32 (async_accumulate_grad_in_cpu_via_gpu).
  void accumulate_on_host(ProgramBuilder& b, bool accumulated, bool last) const;

  void reduce_traffic(ProgramBuilder& b) const;
};

}  // namespace shardplan
