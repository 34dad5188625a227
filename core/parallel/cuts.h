// How each framework cuts each parameter over tensor-parallel ranks.
#pragma once

#include <optional>
#include <string_view>

#include "frameworks/traits.h"
#include "model/model.h"
#include "parallel/shard.h"

namespace shardplan {

enum class Cut : std::uint8_t {
  whole,            ///< on every rank
  summed,           ///< on every rank, but each makes a part of its gradient
  column,           ///< along the outputs, which stay divided
  column_gathered,  ///< along the outputs, which are put together
  row,              ///< along the inputs, which are divided; the results are summed
  row_sliced,       ///< along the inputs, which are whole: each rank takes its part
  flow,             ///< along the outputs if the input is whole, else along the inputs
  vocabulary,       ///< a table along its rows; what a rank lacks is summed in
  number,           ///< experts, each whole on one rank
};

/// Whether a tensor is a router's: small, and whole on every rank.
bool is_router(std::string_view tensor);
/// A projection to keys or to values, alone; or to queries, keys and values together.
bool is_key_or_value(std::string_view tensor);
bool is_packed_attention(std::string_view tensor);

/// Whether transformers publishes a tensor-parallel plan for a type, and whether it is known here.
enum class PlanState : std::uint8_t { none, published, described };
PlanState plan_state(std::string_view text_type);

/// Whether modules are cut by their names: by the plan that transformers publishes for the family,
/// or an engine's for experts.
bool has_plan_by_name(const Model& model, const Plan& plan);

/// The cuts of one network under one framework.
class Cuts {
 public:
  /// Throws InputError where the framework cannot cut the network.
  Cuts(const Model& model, const Plan& plan, SplitStyle style);

  Cut of(ParameterId id) const;

 private:
  Cut by_plan(const Parameter& p) const;
  Cut by_flow(const Parameter& p) const;

  const Model& model_;
  SplitStyle style_;
  bool by_tokens_;                 ///< DTensor's sequence parallelism
  std::ptrdiff_t plan_ = -1;       ///< which of the plans by names; -1: by what follows what
  bool tied_head_ = false;         ///< the head's weight is the embedding
  bool only_experts_ = false;      ///< transformers' expert-parallel plan
  bool parts_of_experts_ = false;  ///< Megatron's expert-tensor degree
};

}  // namespace shardplan
