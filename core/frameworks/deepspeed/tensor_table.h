// The tensors that parameters are: one a layer of their segment.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace shardplan {

/// A parameter of one layer, numbered as DeepSpeed numbers them: in the order of registration.
using TensorId = std::int32_t;

class TensorTable {
 public:
  explicit TensorTable(const Model& model);
  TensorId of(ParameterId id, std::int64_t layer) const;
  ParameterId parameter(TensorId t) const { return parameter_[static_cast<std::size_t>(t)]; }
  std::int64_t layer(TensorId t) const { return layer_[static_cast<std::size_t>(t)]; }
  std::size_t size() const { return parameter_.size(); }

 private:
  struct Place {
    TensorId first = 0;
    std::int32_t step = 0;  ///< from a layer's to the next one's; 0: all layers have the same
  };
  std::vector<Place> place_;            ///< by parameter
  std::vector<ParameterId> parameter_;  ///< by tensor
  std::vector<std::int64_t> layer_;
};

}  // namespace shardplan
