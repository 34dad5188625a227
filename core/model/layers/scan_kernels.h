// Layers with a state through the kernels of the libraries that people install for them, as their
// source has them: causal_conv1d 1.6, mamba_ssm 2.3 and flash-linear-attention 0.5.
#pragma once

#include <array>
#include <string_view>

#include "model/builder.h"

namespace shardplan {

struct StateSpace;
struct Convolution1d;

/// Says in the facts that the network has layers with a state, and what is assumed to run them:
/// `libraries`, or PyTorch's own operations.
void note_state_kernels(ModelBuilder& m, std::string_view layers, std::string_view libraries);

/// mamba_split_conv1d_scan_combined: convolution, scan, gated norm and output projection of Mamba 2
/// over what was projected, `all`. Keeps `all`, the scan's result and a statistic of its norm; the
/// rest is computed again. `decay`: -exp(A_log).
ValueId fused_scan(Graph& g, const ModelBuilder& m, const StateSpace& mixer, ValueId all,
                   ValueId decay);

/// causal_conv1d_fn with silu: keeps x.
ValueId fused_convolution(Graph& g, const ModelBuilder& m, const Convolution1d& c, ValueId x);

struct SelectiveScan;
/// mamba_inner_fn: all of Mamba's mixer behind its first projection.
ValueId fused_mixer(Graph& g, const ModelBuilder& m, const SelectiveScan& mixer, ValueId all,
                    ValueId decay);
/// selective_scan_fn over u, the time steps and B beside C [tokens, 2·state], times silu of `gate`.
ValueId fused_selective_scan(Graph& g, const ModelBuilder& m, const SelectiveScan& mixer,
                             std::array<ValueId, 3> in, ValueId gate, ValueId decay);

/// l2norm of flash-linear-attention: x·rsqrt(Σx² + ε) over the columns of each of `heads`. Keeps as
/// much as x, and a statistic a head.
ValueId fused_unit_length(Graph& g, std::int64_t heads, ValueId x);

/// What the gated delta rule computes with: [tokens, value heads × ...].
struct DeltaRule {
  std::int64_t heads = 0, key_dim = 0, value_dim = 0;
  ValueId q = kNone, k = kNone, v = kNone;
  ValueId beta = kNone, decay = kNone;  ///< a number a head
};
/// chunk_gated_delta_rule with normed queries and keys.
ValueId fused_delta_rule(Graph& g, const DeltaRule& rule);

}  // namespace shardplan
