// RMSNorm: keeps its input and a row's reciprocal root in fp32. Each multiprocessor sums its rows'
// share of the weight's gradient. Liger writes the input's gradient over the result's, but for
// models whose residual needs that one too: there it fills a new tensor with zeros first.
#include "kernels/description.h"

namespace shardplan {

namespace fused_rms_norm {
extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "rms_norm",
    .words = "Liger's RMSNorm",
    .gradients = GradientPlace::result,
    .partial_sums = 1,
    .source = "liger_kernel/ops/rms_norm.py",
};
}  // namespace fused_rms_norm

namespace fused_rms_norm_apart {
extern const FusedKernel kKernel;
constinit const FusedKernel kKernel{
    .name = "rms_norm",
    .words = "Liger's RMSNorm, not in place",
    .partial_sums = 1,
    .source = "liger_kernel/ops/rms_norm.py, in_place=False",
};
}  // namespace fused_rms_norm_apart

}  // namespace shardplan
