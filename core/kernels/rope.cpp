// Rotary positions, written over the projections, and their gradients over the gradients. Keeps the
// tables alone.
#include "kernels/description.h"

namespace shardplan::fused_rope {

extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "rope",
    .words = "Liger's rotary positions",
    .writes_input = true,
    .gradients = GradientPlace::result,
    .source = "liger_kernel/ops/rope.py",
};

}  // namespace shardplan::fused_rope
