// Weights stored in fewer bits, which bitsandbytes widens to the type of the product for as long as
// it runs: what that allocates and which kernels it starts.
#pragma once

#include <array>

#include "program/tape/kernel_list.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

/// What is alive while a product reads the weight of `op`; nothing where that is stored as it is.
/// Forward (backends/cuda/ops.py, _dequant_linear_fallback): scales that are quantized too are
/// widened, then shifted into a second tensor; both live as long as the weight. Backward
/// (functional.py, dequantize_4bit): the scales are gone before the product begins.
class WidenedWeight {
 public:
  /// Generation, whose kernels for few tokens read weights as they are stored, is counted as
  /// widening them before the product.
  enum class Pass : std::uint8_t { forward, backward, generation };
  WidenedWeight(Parts& parts, const Op& op, Pass pass);
  WidenedWeight(const WidenedWeight&) = delete;
  WidenedWeight& operator=(const WidenedWeight&) = delete;
  ~WidenedWeight();

 private:
  void drop(StorageId& id);

  Parts& p_;
  std::array<StorageId, 3> held_{kExternal, kExternal, kExternal};
};

/// What the forward pass allocates for it; 0 where the weight is stored as it is.
std::int64_t widened_bytes(const GraphView& view, const Op& op);

/// Whether `op` unpacks a weight that is stored in few bits, for others than its own product: peft
/// takes DoRA's lengths of it (utils/integrations.py, dequantize_module_weight). Then its maker.
const Op* unpacked_by(const GraphView& view, const Op& op);

/// The kernels before the product; `first`: what the host does for the first of them.
KernelList widening_kernels(const GraphView& view, const Op& op, Issue first);

}  // namespace shardplan::tape
