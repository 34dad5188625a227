// LLM.int8(): a weight stored in 8 bits with a scale a row, by which inputs cast to 8 bits are
// multiplied (bitsandbytes 0.50.2, autograd/_functions.py, MatMul8bitLt; backends/cuda/ops.py).
#pragma once

#include <vector>

#include "program/tape/kernel_list.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

/// What lives beside the result of a forward product: the input in 8 bits with a scale a row, the
/// sums in 32 bits and the result in fp16, from which it is cast. Made before the result; nothing
/// where the weight of `op` is another one, or autograd is off.
class Int8Product {
 public:
  Int8Product(Parts& parts, const Op& op);
  Int8Product(const Int8Product&) = delete;
  Int8Product& operator=(const Int8Product&) = delete;
  ~Int8Product();

 private:
  void cast_input(const Op& op);
  StorageId allocate(std::int64_t bytes) {
    return p_.storages.allocate(bytes, Category::workspace);
  }

  Parts& p_;
  std::vector<StorageId> held_;
};

/// The most that lives beside the result while it is made, as Int8Product makes it.
std::int64_t int8_bytes(const GraphView& view, const Op& op);

/// Starts the same from eager PyTorch: a module, whose function of autograd is Python (it takes the
/// host what Liger's do), and which waits twice. Whether there are outliers is read; and the zero
/// that their columns are set to, be there any or not, is copied from pageable memory
/// (`out_row[:, outlier_cols] = 0`). Two profiled steps with 112 and 196 such linears, outliers in
/// every seventh, have 243 and 423 waits: two a linear, one more for outliers, three of the step.
void launch_int8(Parts& parts, const Op& op);

/// What starts on the GPU: the casts, the product, and what makes its result of the sums.
KernelList int8_kernels(const GraphView& view, const Op& op);

/// The weight in the input's type while the input's gradient is made, and the kernels that make it;
/// `first`: what starts with the first of them.
StorageId widened_int8(Parts& parts, const Op& op);
std::int64_t widened_int8_bytes(const GraphView& view, const Op& op);
KernelList int8_widening(const GraphView& view, const Op& op, Issue first);

}  // namespace shardplan::tape
