// The mixer of Mamba: a state of its own for each channel, whose decay depends on the token.
//
// Two ways of computing it are described (StateKernels): PyTorch's own operations, to which
// transformers 5.17 falls back (mamba_selective_scan: the decays of all tokens at once, then a loop
// over the tokens), and mamba_ssm's kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/layers/convolution.h"

namespace shardplan {

struct SelectiveScanShape {
  std::string_view name = "mixer";
  std::int64_t hidden = 0, inner = 0, state = 0, kernel = 0, rank = 0;
  bool bias = false, conv_bias = true;
  bool norms = false;  ///< of time steps, B and C (Jamba); then no function computes it whole
};

struct SelectiveScan {
  SelectiveScanShape shape;
  ParameterId decay = kNone, skip = kNone;  ///< A_log [inner, state] and D [inner]
  Convolution1d convolution;
  LinearModule in, x, dt, out;
  std::optional<NormModule> dt_norm, b_norm, c_norm;
};

/// The rank of the time steps: a number, or a sixteenth of the hidden width ("auto").
std::int64_t time_step_rank(const ModelConfig& config, std::string_view key, std::int64_t hidden,
                            std::int64_t fallback);

/// Registers name.{A_log, D, conv1d, in_proj, x_proj, dt_proj, out_proj, norms}, in the order of
/// the classes.
SelectiveScan selective_scan(ModelBuilder& m, const SelectiveScanShape& shape);

/// The mixer over x [tokens, hidden].
ValueId apply(Graph& g, const ModelBuilder& m, const SelectiveScan& mixer, ValueId x);

}  // namespace shardplan
