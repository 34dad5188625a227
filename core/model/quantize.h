// Which weights are stored in fewer bits.
#pragma once

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Where the parameter can be: bitsandbytes leaves the head, and embeddings and most routers are no
/// linear layers.
inline void store_as(Parameter& p, Quantization format) {
  const NumberFormat& f = format_of(format);
  const bool linear = !p.no_linear && !(p.derived_linear && f.by_bitsandbytes());
  const bool can = p.quantizable && linear && !f.of_experts;
  p.stored = can ? format : Quantization::none;
}

/// The model with its weights in `format`, as a job that asks for it has it.
inline Model stored_as(Model model, Quantization format) {
  for (Parameter& p : model.parameters) store_as(p, format);
  return model;
}

}  // namespace shardplan
