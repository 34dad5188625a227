// In place of NCCL, where the program was built without a CUDA toolkit.
#include "comm/nccl.h"
#include "device/errors.h"

namespace shardplan::validator {
namespace {

[[noreturn]] void refuse_nccl() {
  throw DeviceError("this program was built without CUDA and NCCL; use --device host");
}

}  // namespace

NcclId new_nccl_id() {
  refuse_nccl();
}
std::unique_ptr<Communicator> make_nccl_communicator(Backend&, const NcclId&, int, int) {
  refuse_nccl();
}

}  // namespace shardplan::validator
