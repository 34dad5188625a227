#include "frameworks/fsdp2/units.h"

#include "lowering/tensors.h"
#include "trainers/description.h"

namespace shardplan {

Fsdp2Units::Fsdp2Units(const Model& model, const Plan& plan, const ModelRun& run, Fsdp2Wrap wrap)
    : model_(model),
      plan_(plan),
      ranks_(plan.shard_ranks()),
      trained_type_(plan.workload.lora ? DType::f32 : plan.precision.params),
      is_block_(run.segments.size(), false),
      taken_(model.parameters.size(), false),
      units_(run.segments.size()) {
  const bool reshards = plan.framework.fsdp2.reshard_after_forward;
  const bool whole = wrap == Fsdp2Wrap::whole || plan.framework.fsdp2.units == Fsdp2Wrap::whole;
  const bool divides = !whole && plan.trainer->shards_ends_apart && divides_ends(run);
  bool before_blocks = true;
  for (std::size_t s = 0; s < run.segments.size(); ++s) {
    is_block_[s] = !whole && run.segments[s].segment->checkpointable;
    before_blocks = before_blocks && !is_block_[s];
    if (is_block_[s] || divides) add_segment(s, run);
    units_[s].reshards = reshards && (is_block_[s] || before_blocks);
  }
  for (const ParameterGroup& g : model.groups)
    for (std::int32_t i = g.first; i < g.first + g.count; ++i)
      if (!taken_[static_cast<std::size_t>(i)])
        for (std::int64_t k = 0; k < g.repeat; ++k) add(root_, i);
  root_.reshards = reshards && (whole || !plan.trainer->shards_ends_apart);
}

void Fsdp2Units::add_segment(std::size_t segment, const ModelRun& run) {
  for (const Op& op : run.segments[segment].segment->graph.ops())
    for (const ParameterId id : {op.weight, op.bias}) {
      if (id == kNone || taken_[static_cast<std::size_t>(id)]) continue;
      taken_[static_cast<std::size_t>(id)] = true;
      add(units_[segment], id);
    }
}

/// One run of blocks, and nothing before it that is used behind it too: not tied.
bool Fsdp2Units::divides_ends(const ModelRun& run) const {
  std::vector<bool> before(model_.parameters.size(), false);
  bool blocks = false, ended = false;
  for (const SegmentRun& s : run.segments) {
    if (s.segment->checkpointable && ended) return false;
    blocks = blocks || s.segment->checkpointable;
    ended = blocks && !s.segment->checkpointable;
    for (const Op& op : s.segment->graph.ops()) {
      if (op.weight == kNone) continue;
      const auto id = static_cast<std::size_t>(op.weight);
      if (ended && before[id]) return false;
      if (!blocks) before[id] = true;
    }
  }
  return blocks;
}

DType Fsdp2Units::type_of(const Parameter& p) const {
  if (p.quantized()) return plan_.precision.compute;
  return p.adapter ? DType::f32 : plan_.kept_type();
}

void Fsdp2Units::add(Fsdp2Unit& unit, ParameterId id) const {
  const Parameter& p = model_.parameters[static_cast<std::size_t>(id)];
  const std::int64_t compute = size_of(plan_.precision.compute);
  const std::int64_t shard = shard_elements(p, ranks_);
  unit.gathered = checked_add(unit.gathered, checked_mul(checked_mul(shard, ranks_), compute));
  unit.shards = checked_add(unit.shards, checked_mul(shard, size_of(type_of(p))));
  if (type_of(p) != plan_.precision.compute) unit.cast += shard * compute;
  unit.tensors.push_back(round_up(checked_mul(p.numel, compute), kAllocationUnit));
  unit.unsharded += unit.tensors.back();
  if (!p.trainable) return;
  unit.trained = checked_add(unit.trained, shard * ranks_);
  unit.trained_bytes += unit.tensors.back();
  ++unit.trained_tensors;
}

}  // namespace shardplan
