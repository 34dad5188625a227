// In place of the CUDA back end, where the program was built without a CUDA toolkit.
#include "device/errors.h"
#include "kernels/cuda.h"

namespace shardplan::validator {
namespace {

[[noreturn]] void refuse_cuda() {
  throw DeviceError("this program was built without CUDA; use --device host");
}

}  // namespace

int cuda_device_count() {
  return 0;
}
std::int64_t cuda_workspace_bytes(const StepShapes&) {
  refuse_cuda();
}
bool cuda_has_cudnn() {
  return false;
}
std::unique_ptr<Backend> make_cuda_backend(int) {
  refuse_cuda();
}

}  // namespace shardplan::validator
