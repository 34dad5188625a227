#include "frameworks/fsdp1/flat_units.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace shardplan {
namespace {

const Parameter& parameter_of(const Model& model, ParameterId id) {
  return model.parameters[static_cast<std::size_t>(id)];
}

void pad_to(FlatUnit& unit, std::int64_t multiple) {
  const std::int64_t more = round_up(unit.numel, multiple) - unit.numel;
  if (more > 0) unit.padding.push_back(more);
  unit.numel += more;
}

/// The parameters of a block's operations, in registration order.
std::vector<ParameterId> parameters_of(const Segment& segment, std::vector<bool>& taken) {
  std::vector<ParameterId> ids;
  for (const Op& op : segment.graph.ops())
    for (const ParameterId id : {op.weight, op.bias}) {
      if (id == kNone || taken[static_cast<std::size_t>(id)]) continue;
      taken[static_cast<std::size_t>(id)] = true;
      ids.push_back(id);
    }
  std::sort(ids.begin(), ids.end());
  return ids;
}

/// A tensor of the optimizer that has `numel` elements of `like`.
Parameter piece_of(const Parameter& like, std::int64_t numel) {
  Parameter piece = like;
  if (numel != like.numel) piece.shape = {numel};
  piece.numel = numel;
  return piece;
}

void add_originals(const Model& model, const FlatUnit& unit, std::int64_t count,
                   OptimizerTensors& all) {
  for (std::size_t i = 0; i < unit.parameters.size(); ++i) {
    const Parameter& p = parameter_of(model, unit.parameters[i]);
    const std::int64_t numel = std::min(p.numel, unit.shard - unit.starts[i]);
    if (!p.trainable || numel <= 0) continue;
    Parameter piece = piece_of(p, numel);
    if (unit.ranks > 1) piece.shape = {numel};
    all.tensors.push_back(std::move(piece));
    all.counts.push_back(count);
  }
}

void add_flat(const Model& model, const FlatUnit& unit, std::int64_t count, OptimizerTensors& all) {
  if (unit.shard == 0 || !unit.trains) return;
  Parameter flat;
  flat.name = "_flat_param";
  flat.shape = {unit.shard};
  flat.numel = unit.shard;
  flat.adapter = parameter_of(model, unit.parameters.front()).adapter;  // then fp32
  all.tensors.push_back(std::move(flat));
  all.counts.push_back(count);
}

}  // namespace

FlatUnit flat_unit(const Model& model, std::vector<ParameterId> parameters,
                   const FlatLayoutOptions& options) {
  FlatUnit unit;
  unit.ranks = options.ranks;
  unit.each = options.each;
  unit.parameters = std::move(parameters);
  for (const ParameterId id : unit.parameters) {
    if (options.aligned > 0) pad_to(unit, options.aligned);
    unit.starts.push_back(unit.numel);
    unit.numel = checked_add(unit.numel, parameter_of(model, id).numel);
  }
  if (options.aligned > 0) pad_to(unit, options.ranks);
  unit.shard = ceil_div(unit.numel, options.ranks);
  unit.trains = std::ranges::any_of(
      unit.parameters, [&](ParameterId id) { return parameter_of(model, id).trainable; });
  return unit;
}

FlatUnit wrapped_unit(const Model& model, std::vector<ParameterId> parameters,
                      const FlatLayoutOptions& options) {
  if (!options.trained_apart) return flat_unit(model, std::move(parameters), options);
  const auto stays = [&](ParameterId id) { return !parameter_of(model, id).trainable; };
  const auto apart = std::stable_partition(parameters.begin(), parameters.end(), stays);
  FlatLayoutOptions of_leaf = options;
  of_leaf.each = size_of(DType::f32);
  std::vector<FlatUnit> nested;
  for (auto id = apart; id != parameters.end(); ++id)
    nested.push_back(flat_unit(model, {*id}, of_leaf));
  parameters.erase(apart, parameters.end());
  FlatUnit unit = flat_unit(model, std::move(parameters), options);
  unit.nested = std::move(nested);
  return unit;
}

FlatUnits flat_units(const Model& model, const ModelRun& run, const FlatLayoutOptions& options) {
  FlatUnits units;
  std::vector<bool> taken(model.parameters.size(), false);
  for (const SegmentRun& s : run.segments) {
    const bool block = s.segment->checkpointable;
    units.repeats.push_back(block ? s.segment->repeat : 0);
    units.blocks.push_back(wrapped_unit(
        model, block ? parameters_of(*s.segment, taken) : std::vector<ParameterId>{}, options));
  }
  std::vector<ParameterId> rest;
  for (const ParameterGroup& group : model.groups)
    for (std::int64_t k = 0; k < group.repeat; ++k)
      for (std::int32_t id = group.first; id < group.first + group.count; ++id)
        if (!taken[static_cast<std::size_t>(id)]) rest.push_back(id);
  units.root = wrapped_unit(model, std::move(rest), options);
  return units;
}

OptimizerTensors optimizer_tensors(const Model& model, const FlatUnits& units, bool originals) {
  OptimizerTensors all;
  const auto add = [&](const FlatUnit& unit, std::int64_t count) {
    if (count == 0) return;
    if (originals)
      add_originals(model, unit, count, all);
    else
      add_flat(model, unit, count, all);
  };
  const auto add_with_nested = [&](const FlatUnit& unit, std::int64_t count) {
    add(unit, count);
    for (const FlatUnit& leaf : unit.nested) add(leaf, count);
  };
  add_with_nested(units.root, 1);
  for (std::size_t s = 0; s < units.blocks.size(); ++s)
    add_with_nested(units.blocks[s], units.repeats[s]);
  return all;
}

}  // namespace shardplan
