// The mixer of Mamba 2 (a state-space model with a scalar decay for each head), as Mamba 2,
// Falcon-H1 and Nemotron-H have it.
//
// Two ways of computing it are described (StateKernels): PyTorch's own operations, to which
// transformers 5.17 falls back where nothing else is installed, which multiply out pairs of tokens
// of a chunk with all columns of the state at once; and mamba_ssm's one function with
// causal_conv1d's kernels, which keeps its input and little else.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/layers/convolution.h"

namespace shardplan {

/// How the scan's result is normed and gated, in fp32.
enum class GatedNorm : std::uint8_t {
  none,        ///< times silu of the gate in the gate's type
  gate_first,  ///< then an RMS norm over groups, whose weight multiplies after the cast back
  wide,        ///< gate first or last, and a weight that multiplies in fp32 (Falcon-H1)
};

struct StateSpaceShape {
  std::string_view name = "mixer";
  std::int64_t hidden = 0, inner = 0, heads = 0, groups = 1, state = 0, kernel = 0, chunk = 256;
  bool in_bias = false, out_bias = false, conv_bias = true;
  GatedNorm norm = GatedNorm::gate_first;
  std::int64_t norm_groups = 1;
  bool gate_last = false;    ///< of GatedNorm::wide
  bool multipliers = false;  ///< of the input and of each projected column (Falcon-H1)
  std::int64_t head_dim() const { return inner / heads; }
  std::int64_t keys() const { return checked_mul(groups, state); }  ///< columns of B, or of C
  std::int64_t mixed() const { return inner + 2 * keys(); }
  std::int64_t projected() const { return inner + mixed() + heads; }
};

struct StateSpace {
  StateSpaceShape shape;
  ParameterId time_bias = kNone, decay = kNone, skip = kNone;  ///< dt_bias, A_log and D
  Convolution1d convolution;
  LinearModule in, out;
  std::optional<NormModule> norm;
};

/// Registers name.{dt_bias, A_log, D, conv1d, in_proj, norm, out_proj}, in the order of the
/// classes. Throws where heads do not divide the inner width, which nothing could compute.
StateSpace state_space(ModelBuilder& m, const ModelConfig& config, const StateSpaceShape& shape);

/// The mixer over x [tokens, hidden].
ValueId apply(Graph& g, const ModelBuilder& m, const StateSpace& mixer, ValueId x);

}  // namespace shardplan
