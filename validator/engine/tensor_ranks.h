// The ranks that share each layer, as Megatron-LM divides it (arXiv 1909.08053, 2205.05198).
// Between the products each rank has the same number of rows of a micro-batch; a product needs the
// rows of all, and what products onto the residual stream make on each rank is summed. One rank has
// all rows and nothing to exchange: the same code runs, and every tensor is the part itself.
#pragma once

#include "engine/runtime.h"

namespace shardplan::validator {

class TensorRanks {
 public:
  explicit TensorRanks(const Runtime& runtime)
      : device_(runtime.device), ranks_(runtime.tensor), event_(runtime.device.new_event()) {}

  Backend& device() const { return device_; }
  bool divided() const { return ranks_.size() > 1; }
  int size() const { return ranks_.size(); }
  int rank() const { return ranks_.rank(); }
  /// The one that adds what all have: biases of sums, positions.
  bool first() const { return ranks_.rank() == 0; }

  /// Room for all rows while they are exchanged, until the end of the micro-batch: `values` for
  /// those of the forward pass, `gradients` for what comes back.
  void lend(const Tensor& values, const Tensor& gradients) {
    values_ = values;
    gradients_ = gradients;
  }
  const Tensor& values() const { return values_; }
  const Tensor& gradients() const { return gradients_; }

  /// The rows of all ranks, in `room`. part: [rows / ranks, width].
  Tensor gather(const Tensor& part, const Tensor& room) const;
  /// Where a rank writes what is to be summed into `part`.
  Tensor addend(const Tensor& part, const Tensor& room) const { return divided() ? room : part; }
  /// part: this rank's rows of the sum over the ranks of `addend`.
  void sum(const Tensor& part, const Tensor& addend) const;
  /// all: [ranks, ...] what every rank has at its own place in it.
  void gather_in_place(const Tensor& all) const;

 private:
  Backend& device_;
  Communicator& ranks_;
  Event event_;
  Tensor values_, gradients_;
};

}  // namespace shardplan::validator
