// The gated delta net as Megatron Core runs it (mcore-bridge 1.6, model/modules/gated_delta_net.py;
// megatron/core/ssm/gated_delta_net): one projection, the kernels of flash-linear-attention, a
// fused gated norm. Heads are divided over tensor-parallel ranks; under sequence parallelism the
// bridge gathers the layer's tokens before the projection's own norm, and each rank takes its own
// of what the layer returns.
#pragma once

#include "model/layers/delta_net.h"

namespace shardplan {

/// Says in the facts who runs such layers, and that no run confirms what they keep.
void note_megatron_delta_nets(ModelBuilder& m);

/// The layer over x [tokens, hidden], which `before` norms.
ValueId apply_in_megatron(Graph& g, const ModelBuilder& m, const DeltaNet& d,
                          const NormModule& before, ValueId x);

}  // namespace shardplan
