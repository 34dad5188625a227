// Status codes of CUDA and its libraries, turned into the one exception of a failed device.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string>

#include "device/errors.h"

namespace shardplan::validator::cuda {

inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  throw DeviceError(std::string(call) + ": " + cudaGetErrorString(error));
}

inline void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(std::string(call) + ": " + cublasLtGetStatusString(status));
}

}  // namespace shardplan::validator::cuda
