// In place of what the ranks of GPUs exchange with, where the program was built without a CUDA
// toolkit.
#include "comm/gpu_memory.h"
#include "comm/nccl.h"
#include "device/errors.h"

namespace shardplan::validator {
namespace {

[[noreturn]] void refuse() {
  throw DeviceError("this program was built without CUDA and NCCL; use --device host");
}

}  // namespace

NcclId new_nccl_id() {
  refuse();
}
std::unique_ptr<Communicator> make_nccl_communicator(Backend&, const NcclId&, int, int, Patience) {
  refuse();
}
std::unique_ptr<CommonMemory> gpu_memory(Backend&) {
  refuse();
}

}  // namespace shardplan::validator
