#include "frameworks/deepspeed/stage12_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "frameworks/deepspeed/passes.h"
#include "lowering/tensors.h"

namespace shardplan {

Stage12::Stage12(const Model& model_, const Plan& plan_, const ModelRun& run_, const Engine& engine,
                 std::int64_t rank_)
    : model(model_),
      plan(plan_),
      run(run_),
      e(engine),
      zero(plan_.framework.deepspeed.zero),
      rank(rank_),
      layout(model_, engine.ranks, outside_expert_groups(plan_)),
      experts(model_, plan_),
      touched(layout.touched(rank_) + experts.touched(rank_)),
      tensors(std::max<std::int64_t>(1, trainable_tensors(model_))),
      offload(zero.offload_optimizer.device != OffloadDevice::none),
      accumulates_whole(zero.stage == 1 && engine.g != engine.b && !offload),
      at_once(gradients_at_once(model_, plan_)) {
  if (e.stage == nullptr)
    schedule = schedule_buckets(
        model, run, zero.reduce_bucket_size, [this](ParameterId id) { return owned_layers(id); },
        false, [this](std::int64_t first, std::int64_t end) { return layout.divides(first, end); });
  else  // all at once, when the schedule is done
    schedule.flushes = ceil_div(e.trainable, zero.reduce_bucket_size);
  const bool contiguous = zero.contiguous_gradients || offload;
  bucket_bytes = checked_mul(e.b, zero.reduce_bucket_size);
  bucket_buffers = contiguous ? (zero.overlap_comm ? 2 : 1) * e.communication_dtypes : 0;
}

LayerRange Stage12::owned_layers(ParameterId id) const {
  const Parameter& p = model.parameters[static_cast<std::size_t>(id)];
  if (!experts.exist() || p.kind != ParameterKind::expert) return layout.owned_layers(id, rank);
  return {0, std::numeric_limits<std::int32_t>::max()};
}

std::int32_t Stage12::host_calls(std::int32_t gradients) const {
  const double flushes = static_cast<double>(schedule.flushes * gradients);
  return gradients + static_cast<std::int32_t>(
                         std::lround(kFlushHooks * flushes / static_cast<double>(tensors)));
}

std::vector<Updated> Stage12::updated() const {
  std::vector<std::int64_t> parts = experts.partitions();
  parts.insert(parts.begin(), layout.partition());
  return partitions_of(model, e, rank, parts, true);
}

void Stage12::take(ProgramBuilder& b, const GradientList& gradients) const {
  if (gradients.tensors == 0) return;
  if (bucket_buffers > 0) b.compute(bucket_copies(e, gradients));
  const std::int64_t early = gradients.elements - gradients.elements / flushes();
  if (early > 0) b.compute(flush_kernels(e, {gradients.tensors, early}));
}

void Stage12::take_last(ProgramBuilder& b) const {
  b.compute(flush_kernels(e, {ceil_div(tensors, flushes()), e.trainable / flushes()}));
}

void Stage12::flush(ProgramBuilder& b, std::int64_t elements) const {
  const bool flattens = e.ranks > 1 && zero.reduce_scatter;
  const std::int64_t flat = flattens ? e.b * elements : 0;
  b.alloc(Category::communication_buffers, flat, reduce_pool());
  if (e.c != e.b) b.transient(Category::communication_buffers, e.c * elements, reduce_pool());
  b.free(Category::communication_buffers, flat, reduce_pool());
}

void Stage12::keep_own(ProgramBuilder& b) const {
  if (offload) {
    // Each is measured in double and cast, a tensor's part at a time (copy_grads_in_partition).
    b.transient(Category::communication_buffers, 8 * largest_fragment(), reduce_pool());
    b.transient(Category::communication_buffers, e.m * largest_fragment(), reduce_pool());
  } else {
    b.alloc(Category::gradients, e.b * touched, reduce_pool());
  }
}

void Stage12::accumulate_on_host(ProgramBuilder& b, bool accumulated, bool last) const {
  const std::int64_t bytes = e.b * partition();
  if (accumulated) b.copy(LinkKind::host, true, bytes, "accumulated gradients from the host");
  if (!last) b.copy(LinkKind::host, false, bytes, "accumulated gradients to the host");
  if (!zero.overlap_comm) b.wait(Stream::copy);  // on the stream that computes
}

void Stage12::reduce_traffic(ProgramBuilder& b) const {
  if (e.ranks == 1) return;
  const char* const what = "gradient all-reduce";
  const auto reduce = [&](std::int64_t elements, Group group) {
    if (zero.overlap_comm && !at_once) {
      b.reduce_buckets(Collective::all_reduce, e.c * elements, what, schedule.flushes, group);
    } else {
      b.collective(Collective::all_reduce, e.c * elements, what, schedule.flushes, group);
    }
  };
  reduce(e.trainable - experts.elements(), Group::data);
  if (experts.ranks() > 1) reduce(experts.elements(), Group::expert_data);
  b.wait(Stream::communication);
}

}  // namespace shardplan
