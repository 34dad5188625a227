#include "frameworks/fsdp2/units.h"

#include <algorithm>

#include "lowering/tensors.h"
#include "trainers/description.h"

namespace shardplan {

Fsdp2Units::Fsdp2Units(const Model& model, const Plan& plan, const ModelRun& run, Fsdp2Wrap wrap)
    : model_(model),
      plan_(plan),
      ranks_(plan.shard_ranks()),
      expert_ranks_(ranks_ / plan.parallel.expert),
      trained_type_(plan.workload.lora ? DType::f32 : plan.precision.params),
      is_block_(run.segments.size(), false),
      taken_(model.parameters.size(), false),
      block_of_(model.parameters.size(), kNone),
      units_(run.segments.size()) {
  const bool reshards = plan.framework.fsdp2.reshard_after_forward;
  const bool whole = wrap == Fsdp2Wrap::whole || plan.framework.fsdp2.units == Fsdp2Wrap::whole;
  const bool keeps_towers = plan.framework.fsdp2.frozen_tower == FrozenTower::root;
  const bool divides = !whole && plan.trainer->shards_ends_apart && divides_ends(run);
  root_ = unit_on(ranks_, plan.copies() > 1 ? Group::shard : Group::data);
  for (Fsdp2Unit& unit : units_) unit = root_;
  bool before_blocks = true;
  for (std::size_t s = 0; s < run.segments.size(); ++s) {
    const Segment& segment = *run.segments[s].segment;
    is_block_[s] = !whole && segment.checkpointable && !(keeps_towers && is_frozen(segment));
    before_blocks = before_blocks && !is_block_[s];
    if (is_block_[s] || divides) add_segment(s, run);
    units_[s].reshards = reshards && (is_block_[s] || before_blocks);
    for (Fsdp2Unit& experts : units_[s].experts)
      experts.reshards = units_[s].reshards && !(experts.apart && !plan.recomputes_blocks());
  }
  for (const ParameterGroup& g : model.groups)
    for (std::int32_t i = g.first; i < g.first + g.count; ++i)
      if (!taken_[static_cast<std::size_t>(i)])
        for (std::int64_t k = 0; k < g.repeat; ++k) add(root_, i);
  root_.reshards = reshards && (whole || !plan.trainer->shards_ends_apart);
  const ParameterId tied = tied_table(run);
  if (!whole && plan.trainer->shards_table_last && root_.last_trained != kNone && tied != kNone &&
      model.parameters[static_cast<std::size_t>(tied)].trainable)
    root_.last_trained = tied;
}

/// Of a tower, and nothing of it trains.
bool Fsdp2Units::is_frozen(const Segment& segment) const {
  const std::vector<Op>& ops = segment.graph.ops();
  return segment.of_images && std::none_of(ops.begin(), ops.end(), [&](const Op& op) {
           return op.weight != kNone &&
                  model_.parameters[static_cast<std::size_t>(op.weight)].trainable;
         });
}

void Fsdp2Units::add_segment(std::size_t segment, const ModelRun& run) {
  for (const Op& op : run.segments[segment].segment->graph.ops())
    for (const ParameterId id : {op.weight, op.bias}) {
      if (id == kNone || taken_[static_cast<std::size_t>(id)]) continue;
      taken_[static_cast<std::size_t>(id)] = true;
      if (is_block_[segment])
        block_of_[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(segment);
      Fsdp2Unit& unit = units_[segment];
      add(is_expert(id) ? experts_of(unit) : unit, id);
    }
}

/// What is used before the blocks and behind them too; kNone where there is none.
ParameterId Fsdp2Units::tied_table(const ModelRun& run) const {
  std::vector<bool> before(model_.parameters.size(), false);
  bool blocks = false;
  for (const SegmentRun& s : run.segments) {
    blocks = blocks || s.segment->checkpointable;
    const bool behind = blocks && !s.segment->checkpointable;
    for (const Op& op : s.segment->graph.ops()) {
      if (op.weight == kNone) continue;
      const auto id = static_cast<std::size_t>(op.weight);
      if (behind && before[id]) return op.weight;
      if (!blocks) before[id] = true;
    }
  }
  return kNone;
}

/// One run of blocks, and no tied table.
bool Fsdp2Units::divides_ends(const ModelRun& run) const {
  bool blocks = false, ended = false;
  for (const SegmentRun& s : run.segments) {
    if (s.segment->checkpointable && ended) return false;
    blocks = blocks || s.segment->checkpointable;
    ended = blocks && !s.segment->checkpointable;
  }
  return blocks && tied_table(run) == kNone;
}

DType Fsdp2Units::type_of(const Parameter& p) const {
  if (p.quantized()) return plan_.precision.compute;
  return p.adapter ? DType::f32 : plan_.kept_type();
}

bool Fsdp2Units::is_narrow(const Parameter& p) const {
  return plan_.framework.fsdp2.float8_all_gather != Float8Gather::none && p.quantizable &&
         recipe_of(plan_.precision.linear).cast != OperandCast::none;
}

bool Fsdp2Units::is_expert(ParameterId id) const {
  return plan_.parallel.expert > 1 &&
         model_.parameters[static_cast<std::size_t>(id)].kind == ParameterKind::expert;
}

/// Experts of which a rank would not have one each are cut along dimension 1 (torchtitan v0.2.2,
/// models/llama4/infra/parallelize.py, apply_fsdp; NeMo Automodel, moe/parallelizer.py,
/// _moe_shard_placement, cuts them so whatever their number).
std::int64_t Fsdp2Units::shard_of(const Parameter& p) const {
  if (plan_.parallel.expert == 1 || p.kind != ParameterKind::expert)
    return shard_elements(p, ranks_);
  if (expert_ranks_ <= p.shape.front() || p.shape.size() < 2)
    return shard_elements(p, expert_ranks_);
  return checked_mul(ceil_div(p.shape[1], expert_ranks_), p.numel / p.shape[1]);
}

Fsdp2Unit Fsdp2Units::unit_on(std::int64_t ranks, Group group) const {
  Fsdp2Unit unit;
  unit.ranks = ranks;
  unit.group = group;
  return unit;
}

Fsdp2Unit& Fsdp2Units::experts_of(Fsdp2Unit& unit) const {
  if (unit.experts.empty()) {
    unit.experts.push_back(unit_on(expert_ranks_, Group::expert_data));
    unit.experts.front().apart = expert_ranks_ == 1 && !plan_.trainer->shards_lone_experts;
  }
  return unit.experts.front();
}

void Fsdp2Units::add(Fsdp2Unit& unit, ParameterId id) const {
  const Parameter& p = model_.parameters[static_cast<std::size_t>(id)];
  const std::int64_t compute = size_of(plan_.precision.compute);
  const std::int64_t shard = shard_of(p);
  const bool narrow = is_narrow(p);
  const std::int64_t width = narrow ? 1 : compute;
  const bool casts = narrow || type_of(p) != plan_.precision.compute;
  unit.shards = checked_add(unit.shards, checked_mul(shard, size_of(type_of(p))));
  const std::int64_t whole = round_up(checked_mul(p.numel, width), kAllocationUnit);
  if (!unit.apart || casts) {
    unit.tensors.push_back(whole);
    unit.unsharded += whole;
  }
  // One rank copies what it has, tensor by tensor (_fsdp_param_group.py, unshard).
  if (plan_.parallel.expert == 1 || unit.ranks > 1) {
    unit.gathered = checked_add(unit.gathered, checked_mul(checked_mul(shard, unit.ranks), width));
    if (casts) unit.cast += shard * width;
  }
  if (narrow) {
    ++unit.narrow_tensors;
    unit.widest_narrow = std::max(unit.widest_narrow, shard);
    unit.narrow_shards += shard * size_of(type_of(p));
  }
  if (!p.trainable) return;
  unit.trained = checked_add(unit.trained, shard * unit.ranks);
  unit.trained_bytes += round_up(checked_mul(p.numel, compute), kAllocationUnit);
  ++unit.trained_tensors;
  unit.last_trained = std::max(unit.last_trained, id);
}

}  // namespace shardplan
