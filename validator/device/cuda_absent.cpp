// In place of the CUDA back end, where the program was built without a CUDA toolkit.
#include "device/cuda.h"
#include "device/errors.h"

namespace shardplan::validator {
namespace {

[[noreturn]] void refuse() {
  throw DeviceError("this program was built without CUDA; use --device host");
}

}  // namespace

int cuda_device_count() {
  return 0;
}
std::int64_t cuda_workspace_bytes(const StepShapes&) {
  refuse();
}
std::unique_ptr<Backend> make_cuda_backend(int) {
  refuse();
}
NcclId new_nccl_id() {
  refuse();
}
std::unique_ptr<Communicator> make_nccl_communicator(Backend&, const NcclId&, int, int) {
  refuse();
}

}  // namespace shardplan::validator
