// What a run of a graph knows of each value.
#pragma once

#include <cstdint>

#include "formats/dtype.h"
#include "model/graph.h"

namespace shardplan::tape {

/// A row of Storages.
using StorageId = std::int32_t;
inline constexpr StorageId kExternal = -1;  ///< parameters and shared tensors: owned elsewhere

struct ValueState {
  StorageId storage = kExternal;
  DType dtype = DType::f32;
  bool needs_grad = false;
  bool sliced = false;          ///< a part of its storage: read element by element
  std::int32_t shared = kNone;  ///< it is this one of Model::shared
  ValueId same = kNone;         ///< it is this value's tensor: a conversion had nothing to do
};

}  // namespace shardplan::tape
