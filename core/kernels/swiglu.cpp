// silu(gate)·up in one kernel. Keeps both, and writes their gradients over them; silu is computed
// again.
#include "kernels/description.h"

namespace shardplan::fused_swiglu {

extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "swiglu",
    .words = "Liger's SwiGLU",
    .gradients = GradientPlace::inputs,
    .source = "liger_kernel/ops/swiglu.py",
};

}  // namespace shardplan::fused_swiglu
