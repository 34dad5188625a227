#include "program/tape/tile_sums.h"

#include <algorithm>
#include <utility>

namespace shardplan::tape {

TileGradients::TileGradients(Parts& parts, const TiledPart& tiled, std::int64_t count)
    : p_(parts), how_(parts.options.tiles.sums), count_(count) {
  for (std::size_t i = tiled.begin; i < tiled.end; ++i)
    for (const ParameterId id : {p_.graph().ops()[i].weight, p_.graph().ops()[i].bias})
      if (p_.view.trains(id) && std::ranges::find(weights_, id) == weights_.end())
        weights_.push_back(id);
  if (how_ != TileSums::copies && how_ != TileSums::hooks) return;
  for (const ParameterId id : weights_)
    zeros_.push_back(tensor(
        id, how_ == TileSums::hooks ? p_.view.state(tiled.in).dtype : p_.view.parameter_type(id)));
}

StorageId TileGradients::tensor(ParameterId id, DType type) {
  return p_.storages.allocate(p_.view.bytes_of(p_.view.parameter(id), type), Category::gradients);
}

void TileGradients::add(ParameterId id) {
  const DType type = p_.view.parameter_type(id);
  const Parameter& weight = p_.view.parameter(id);
  p_.writer.launch(memory_kernel(KernelKind::elementwise, Issue::autograd, type,
                                 3 * static_cast<double>(p_.view.bytes_of(weight, type)),
                                 static_cast<double>(weight.numel)));
}

/// The gradient stays where AccumulateGrad puts it, until the last part has come.
void TileGradients::sum(ParameterId id) {
  StorageId& sum = so_far_.try_emplace(id, kExternal).first->second;
  if (sum == kExternal) {
    sum = tensor(id, p_.view.parameter_type(id));
    return;
  }
  const StorageId gradient = tensor(id, p_.view.parameter_type(id));
  add(id);
  p_.storages.unref(gradient);
}

void TileGradients::arrive(ParameterId id, std::int64_t number) {
  if (how_ == TileSums::autograd) return p_.gradients.give_parameter(id);
  if (how_ == TileSums::copies) {
    of_part_.emplace(id, tensor(id, p_.view.parameter_type(id)));
    return;
  }
  if (how_ == TileSums::hooks) add(id);
  if (number + 1 < count_) return sum(id);
  if (count_ > 1) sum(id);
  if (const auto found = so_far_.find(id); found != so_far_.end()) {
    p_.storages.unref(found->second);
    so_far_.erase(found);
  }
  p_.gradients.give_parameter(id);
}

/// axolotl's adds up what has come, weight by weight.
void TileGradients::end_part() {
  for (const ParameterId id : weights_) {
    const auto came = of_part_.find(id);
    if (came == of_part_.end()) continue;
    add(id);
    p_.storages.unref(std::exchange(named_, came->second));
  }
  of_part_.clear();
}

/// axolotl's function has names for the earlier gradients, its own sums and what it makes of both,
/// until it returns.
void TileGradients::end() {
  std::vector<StorageId> made;
  const bool adds = how_ == TileSums::copies && p_.options.tiles.accumulates;
  for (std::size_t k = 0; adds && k < weights_.size(); ++k)
    made.push_back(tensor(weights_[k], p_.view.parameter_type(weights_[k])));
  for (std::size_t k = 0; how_ == TileSums::copies && k < weights_.size(); ++k) {
    if (!adds) p_.storages.unref(zeros_[k]);
    p_.gradients.give_parameter(weights_[k]);
  }
  for (const StorageId id : made) p_.storages.unref(id);
  if (how_ != TileSums::copies || adds)
    for (const StorageId id : zeros_) p_.storages.unref(id);
  p_.storages.unref(named_);
}

}  // namespace shardplan::tape
