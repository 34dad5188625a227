// Which dimension of each parameter tensor tensor-parallel ranks divide.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/model.h"

namespace shardplan {

/// A part of a width: `num` of `den` equal pieces.
struct Part {
  std::int64_t num = 1, den = 1;
  bool whole() const { return num == den; }
};

/// `part` of n; nullopt where it does not come out even.
std::optional<std::int64_t> share_of(std::int64_t n, Part part);

class ParameterCuts {
 public:
  explicit ParameterCuts(std::size_t parameters) : cuts_(parameters) {}

  void cut(ParameterId id, std::size_t dim, Part part) {
    cuts_[static_cast<std::size_t>(id)] = {dim, part};
  }
  /// Along the first dimension; kNone: nothing.
  void cut_rows(ParameterId id, Part part) {
    if (id != kNone) cut(id, 0, part);
  }
  /// The weight of the linear `op` of `graph`: [outputs, inputs], or the other way round (GPT-2's
  /// Conv1D). `rows`: along the inputs.
  void cut_weight(const Model& model, const Graph& graph, const Op& op, bool rows, Part part);

  /// Makes the model's parameters as small as they were cut; divide(n, part) is `part` of a side.
  template <typename Divide>
  void apply(Model& model, Divide&& divide) const {
    for (std::size_t i = 0; i < cuts_.size(); ++i) {
      if (cuts_[i].part.whole()) continue;
      Parameter& p = model.parameters[i];
      std::int64_t& side = p.shape[cuts_[i].dim];
      const std::int64_t part = divide(side, cuts_[i].part);
      p.numel = p.numel / side * part;
      side = part;
    }
  }

 private:
  struct ParameterCut {
    std::size_t dim = 0;
    Part part;
  };
  std::vector<ParameterCut> cuts_;  ///< by parameter
};

}  // namespace shardplan
