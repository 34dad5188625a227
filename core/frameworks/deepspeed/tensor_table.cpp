#include "frameworks/deepspeed/tensor_table.h"

namespace shardplan {

TensorTable::TensorTable(const Model& model) : place_(model.parameters.size()) {
  for (const ParameterGroup& group : model.groups)
    for (std::int64_t layer = 0; layer < group.repeat; ++layer)
      for (ParameterId id = group.first; id < group.first + group.count; ++id) {
        if (layer == 0)
          place_[static_cast<std::size_t>(id)] = {static_cast<TensorId>(parameter_.size()),
                                                  group.repeat > 1 ? group.count : 0};
        parameter_.push_back(id);
        layer_.push_back(layer);
      }
}

TensorId TensorTable::of(ParameterId id, std::int64_t layer) const {
  const Place& place = place_[static_cast<std::size_t>(id)];
  return place.first + static_cast<TensorId>(layer) * place.step;
}

}  // namespace shardplan
