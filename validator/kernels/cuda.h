// The CUDA back end's way in, without a CUDA header. cuda_absent.cpp answers in its place where the
// program was built without a CUDA toolkit.
#pragma once

#include <cstdint>
#include <memory>

#include "device/backend.h"

namespace shardplan::validator {

/// GPUs that this process can use: 0 without a driver, and in a build without CUDA.
int cuda_device_count();

/// What the CUDA back end will need of workspace, for dry runs on machines without a GPU. Throws
/// DeviceError in a build without CUDA.
std::int64_t cuda_workspace_bytes(const StepShapes& shapes);

/// Whether attention in 2-byte types runs on cuDNN. Our own kernels are slower:
/// docs/evidence/kernels.md.
bool cuda_has_cudnn();

/// Takes device `device` for the calling thread and measures what context and libraries take.
std::unique_ptr<Backend> make_cuda_backend(int device);

}  // namespace shardplan::validator
