#include "frameworks/deepspeed/stage3_plan.h"

#include <algorithm>

#include "frameworks/deepspeed/expert_groups.h"
#include "frameworks/deepspeed/flat_states.h"
#include "frameworks/deepspeed/saved_inputs.h"

namespace shardplan {
namespace {

std::int64_t largest_of(const std::vector<Updated>& groups) {
  std::int64_t largest = 0;
  for (const Updated& group : groups) largest = std::max(largest, group.numel);
  return largest;
}

}  // namespace

Stage3::Stage3(const Model& model_, const Plan& plan_, const ModelRun& run_, const Engine& engine)
    : model(model_),
      plan(plan_),
      run(run_),
      e(engine),
      zero(plan_.framework.deepspeed.zero),
      layout(shard_layout(model_, engine.ranks, engine.expert_ranks)),
      gather(model_, plan_, run_, engine),
      secondary(model_, plan_, run_, gather),
      schedule(schedule_buckets(
          model_, run_, zero.reduce_bucket_size, [](ParameterId) { return LayerRange{}; },
          engine.expert_ranks > 0)),
      sub_groups(shardplan::sub_groups(model_, plan_, engine, zero.sub_group_size)),
      sub_group(std::max(largest_of(sub_groups), ExpertGroups(model_, plan_).largest_partition())),
      states(states_of(e, shards_of(model_, e, layout.trainable))),
      special_temporaries(shardplan::special_temporaries(model_, e)),
      offload_optimizer(zero.offload_optimizer.device != OffloadDevice::none),
      offload_param(zero.offload_param.device != OffloadDevice::none),
      group(zero.mics() ? Group::shard : Group::data),
      quantized_reduction(zero.quantized_gradients && !zero.mics() && plan_.cluster.nodes > 1) {
  if (quantized_reduction)
    hops = shardplan::quantized_reduction(model, e.ranks, plan.cluster.gpus_per_node, zero.loco);
}

bool Stage3::nodes_hold(ParameterId id) const {
  if (!gather.gathers() || gather.persistent(id)) return false;
  const bool reenters =  // the graph is made in the backward pass, block by block
      plan.recomputes_blocks() && deepspeed_saved_input(plan).function != CheckpointFunction::torch;
  const Parameter& p = model.parameters[static_cast<std::size_t>(id)];
  return !reenters && p.quantized() && gather.used_in_backward(p.module);
}

std::int64_t Stage3::last_flush() const {
  return e.expert_ranks > 0 ? schedule.most_elements
                            : std::min(zero.reduce_bucket_size, e.trainable);
}

/// The flushes between the first and the last one are not told apart: the fullest bucket stands for
/// them.
FlushedBucket Stage3::later_flush() const {
  return schedule.flushes > 2 ? schedule.fullest : schedule.last;
}

/// reduce_scatter_coalesced interleaves the bucket into a padded copy, of which this rank's part
/// gets the sum, also where there is one rank; a tensor that is alone and needs no padding is
/// reduced where it is. The part is cast where gradients add up in another type (stage3.py,
/// __avg_scatter_grads).
/// all_to_all_quant_reduce takes its tensors one by one and keeps an fp16 part of each.
void Stage3::flush(ProgramBuilder& b, const FlushedBucket& bucket) const {
  const std::int64_t elements = bucket.elements;
  // Muon gathers the momentum of the bucket's matrices, beside what it computes for one
  // (_apply_distributed_muon_update).
  if (special_temporaries > 0)
    b.transient(Category::workspace, special_temporaries + e.c * elements);
  if (!zero.reduce_scatter) return;
  const std::int64_t part = ceil_div(elements, e.ranks);
  const bool in_place = bucket.tensors == 1 && elements % e.ranks == 0;
  const std::int64_t interleaved = in_place ? 0 : e.c * round_up(elements, e.ranks);
  const std::int64_t cast = e.g == e.c ? 0 : e.g * part;
  const std::int64_t copy = quantized_reduction ? 2 * part : interleaved;
  b.alloc(Category::communication_buffers, copy, reduce_pool());
  b.transient(Category::communication_buffers, quantized_reduction ? hops.buffers : cast,
              reduce_pool());
  b.free(Category::communication_buffers, copy, reduce_pool());
}

/// A part goes to the host and comes back in the type of accumulation, for its norm, which is taken
/// in double of 250 M elements at a time; then it goes there again in the masters' type
/// (partition_grads, _constant_buffered_norm2, _offload_grad_partition_at_boundary). What is larger
/// than the bucket, as the embedding's gradient can be, is there beside it.
void Stage3::offload_last(ProgramBuilder& b) const {
  if (!offload_optimizer) return;
  constexpr std::int64_t kNormElements = 250'000'000;
  const bool passes_bucket = e.largest > zero.reduce_bucket_size;
  const std::int64_t whole = passes_bucket ? e.largest : last_flush();
  const std::int64_t part = ceil_div(std::min(whole, e.largest), e.ranks);
  std::int64_t bytes = checked_mul(e.g, ceil_div(whole, e.ranks));
  if (passes_bucket) bytes += checked_mul(e.b + (e.c != e.b ? e.c : 0), whole);
  b.transient(Category::workspace,
              bytes + std::max(8 * std::min(kNormElements, part), checked_mul(e.m, part)),
              reduce_pool());
}

void Stage3::reduce(ProgramBuilder& b, bool last) const {
  if (e.ranks == 1 && plan.copies() == 1) return;
  const auto send = [&](Collective kind, std::int64_t bytes, const char* what, std::int64_t calls,
                        Group among) {
    if (zero.overlap_comm) {
      b.reduce_buckets(kind, bytes, what, calls, among);
    } else {
      b.collective(kind, bytes, what, calls, among);
    }
  };
  const char* const scatter = "gradient reduce-scatter";
  if (quantized_reduction) {
    // Of each tensor its packed values and their scales, in calls of their own.
    send(Collective::all_to_all, hops.in_node, "4-bit gradient all-to-all in nodes",
         2 * hops.tensors, Group::node);
    send(Collective::all_to_all, hops.between_nodes, "4-bit gradient all-to-all between nodes",
         2 * hops.tensors, Group::across_nodes);
    send(Collective::reduce_scatter, e.c * hops.other_elements, scatter, hops.other_tensors, group);
  } else if (e.ranks > 1) {
    send(Collective::reduce_scatter, e.c * e.ranks * (layout.trainable - layout.experts), scatter,
         schedule.flushes, group);
    if (e.expert_ranks > 1)
      send(Collective::reduce_scatter, e.c * e.expert_ranks * layout.experts, scatter,
           schedule.flushes, Group::expert_data);
  }
  if (last && plan.copies() > 1)  // mics.py allreduce_mics_shard_grads, in place
    send(Collective::all_reduce, e.g * layout.trainable, "gradient all-reduce over copies",
         schedule.flushes, Group::replica);
  b.wait(Stream::communication);
}

std::int64_t Stage3::frozen_bytes() const {
  if (!zero.quantized_nontrainable_weights) return checked_mul(e.b, layout.frozen);
  std::int64_t bytes = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.trainable)
      bytes += checked_mul(frozen_shard_bytes(ceil_div(p.numel, e.ranks), e.b, true), repeat);
  });
  return bytes;
}

}  // namespace shardplan
