// One network as each plan of a search builds it: Megatron-LM's kernels keep other tensors than
// Hugging Face's.
#pragma once

#include <functional>
#include <vector>

#include "model/builder.h"
#include "questions/search/space.h"

namespace shardplan {

class ModelVariants {
 public:
  /// The same network for all plans. `model` has to outlive this.
  ModelVariants(const Model& model) : own_(&model) {}  // NOLINT(google-explicit-constructor)

  /// `model` is that of `plan`; `build` makes the others that plans of `space` need.
  ModelVariants(const Model& model, const Plan& plan, const SearchSpace& space,
                const std::function<Model(const BuildOptions&)>& build);

  const Model& of(const Plan& plan) const;

 private:
  struct Variant {
    BuildOptions options;
    Model model;
  };
  const Model* own_;
  std::vector<Variant> others_;
};

}  // namespace shardplan
