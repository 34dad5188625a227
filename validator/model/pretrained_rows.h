// Where the rows of the engine's parameters are in a Hugging Face checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/spec.h"

namespace shardplan::validator {

/// What rows of one of the engine's parameters come from; experts' matrices are one below the
/// other.
struct PretrainedRows {
  std::string name;        ///< in the checkpoint, without "model." or "transformer."
  std::int64_t first = 0;  ///< row in the parameter
  std::int64_t count = 0;
  bool transposed = false;  ///< stored [in, out], as GPT-2's Conv1D
  /// Above 1: stored [rows of one expert, columns, experts], as peft's B of experts.
  std::int64_t experts_last = 1;

  /// Where element `i` of the rows is stored, row by row.
  std::int64_t stored_at(std::int64_t i, std::int64_t columns) const;
  /// Whether elements lie as they are here.
  bool in_order() const { return !transposed && experts_last == 1; }
  /// As they are stored, of a parameter of so many columns.
  std::array<std::int64_t, 2> shape(std::int64_t columns) const;
};

/// The sources of parameter `parameter` ("qkv.weight") of unit `unit` ("blocks.3"). `is_stored`:
/// whether the checkpoint has a tensor of that name. Experts are one tensor a layer, as
/// transformers 5 has them in memory, or one an expert, as checkpoints are published.
std::vector<PretrainedRows> pretrained_rows(
    const DecoderSpec& spec, const std::string& unit, const std::string& parameter,
    const std::function<bool(const std::string&)>& is_stored);

}  // namespace shardplan::validator
