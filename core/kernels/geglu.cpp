// gelu(gate)·up in one kernel, with the approximation by tanh. Keeps both, and writes their
// gradients over them.
#include "kernels/description.h"

namespace shardplan::fused_geglu {

extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "geglu",
    .words = "Liger's GeGLU",
    .gradients = GradientPlace::inputs,
    .source = "liger_kernel/ops/geglu.py",
};

}  // namespace shardplan::fused_geglu
