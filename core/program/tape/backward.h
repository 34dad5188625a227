// The backward pass: nodes in reverse order. Each allocates the gradients of its inputs, then drops
// its incoming gradient and what it saved.
#pragma once

#include <vector>

#include "program/tape/communicate.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

class BackwardPass {
 public:
  explicit BackwardPass(Parts& parts) : p_(parts) {}
  void run();

 private:
  /// The gradient of a tensor that autocast made, on its way to the tensor that was cast: the
  /// cast's backward runs once the node that read the copy has dropped what it saved.
  struct CastBack {
    ValueId value = kNone;
    ParameterId weight = kNone;  ///< instead of `value`
    StorageId gradient = kExternal;
    DType type = DType::f32;  ///< of `gradient`
  };

  void begin();
  void step(std::size_t i);
  void launch(const Op& op);
  void launch_one_by_one(const LinearBackwardKernels& kernels);
  void differentiate(std::size_t i, StorageId gradient);
  void linear(const Op& op);
  bool makes_weight_first(const Op& op) const;
  bool folds_rows(const Op& op) const;
  void weight_of_linear(const Op& op, DType low);
  void bias_of_linear(const Op& op);
  void attention(const Op& op);
  void scores_bias(const Op& op, DType low);
  void norm(const Op& op, StorageId g);
  void softmax(const Op& op, StorageId gradient);
  void places(const Op& op);
  void elementwise(const Op& op, StorageId gradient);
  void multiplication(const Op& op, StorageId gradient);
  void product(const Op& op, StorageId gradient);
  void elementwise_input(const Op& op, std::size_t k, StorageId gradient);
  void give_from(const Op& op, std::size_t k, StorageId gradient);
  void run_casts();
  StorageId renamed(StorageId gradient);
  bool unpacks() const;
  void release_input();
  void end();

  Parts& p_;
  KeptInput kept_;
  std::vector<CastBack> casts_;          ///< of the node that runs
  std::size_t node_ = 0;                 ///< that runs
  bool input_released_ = false;          ///< the checkpoint's
  StorageId held_gradient_ = kExternal;  ///< the output's, for as long as a function holds it
  std::int32_t first_slot_ = 0;          ///< of storages that this pass makes
};

}  // namespace shardplan::tape
