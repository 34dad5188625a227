// One rank's share of a network that tensor, sequence, context and expert parallelism divide.
//
// The share is a network again: parameters have this rank's shapes, values its extents, and what
// ranks exchange are operations (OpKind::communicate) at the places where the framework puts them.
// So whatever lowers a network lowers a rank's share of one. docs/parallelism.md derives the terms.
#pragma once

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// How a framework cuts the layers of a network.
enum class SplitStyle : std::uint8_t {
  megatron,      ///< every linear, the vocabulary too; one exchange for a layer's input
  transformers,  ///< tp_plan on DTensors: each linear exchanges its own input's gradient
  autotp,        ///< DeepSpeed: tp_plan where the class has one, in-place exchanges
};
SplitStyle split_style(FrameworkKind framework);

/// The rank that has the most, under plan.parallel; pipeline stages are left to the caller. Throws
/// InputError for a network that the framework cannot cut so.
Model shard(const Model& whole, const Plan& plan);

/// Whether shard() would change anything.
bool is_sharded(const Plan& plan);

}  // namespace shardplan
