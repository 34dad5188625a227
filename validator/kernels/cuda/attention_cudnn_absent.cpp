// A build without cudnn-frontend's headers: attention runs on our own kernels.
#include "kernels/cuda.h"
#include "kernels/cuda/attention.h"

namespace shardplan::validator {

bool cuda_has_cudnn() {
  return false;
}

namespace cuda {

std::unique_ptr<Attention> make_cudnn_attention() {
  return nullptr;
}

std::int64_t cudnn_attention_workspace(DType /*dtype*/, const Heads& /*heads*/) {
  return 0;
}

}  // namespace cuda
}  // namespace shardplan::validator
