// Where the results of exchanges among ranks lie, in both passes.
#pragma once

#include "program/tape/parts.h"

namespace shardplan::tape {

/// An op of kind communicate, and its backward. `gradient`: of its result.
void communicate_forward(Parts& p, const Op& op);
void communicate_backward(Parts& p, const Op& op, StorageId gradient);

/// Keys and values go round while attention over those that are here runs: two buffers beside the
/// rank's own, of `copies` tensors each (the backward pass sends their gradients along).
void ring(Parts& p, const Op& op, std::int64_t copies);

/// Sequence parallelism saves a linear's input as this rank has it and gathers the rest again, once
/// for all linears of that input: until the first of them, the last in the backward pass, is done.
class KeptInput {
 public:
  /// What `linear` multiplies by, with a reference for the caller; kExternal where it saved its
  /// input whole.
  StorageId gather(Parts& p, const Op& linear, DType type);

 private:
  ValueId from_ = kNone;
  StorageId whole_ = kExternal;
};

}  // namespace shardplan::tape
