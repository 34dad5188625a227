// What is used of libcufile.so (NVIDIA GPUDirect Storage), as its cufile.h declares it from
// CUDA 11.4 to 13: https://docs.nvidia.com/gpudirect-storage/api-reference-guide/. The library is
// loaded when it is asked for, so no build needs it, nor CUDA's headers.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace shardplan::validator::cufile {

/// CUfileError_t, returned by value: of cuFile, and of the CUDA driver where that is what failed.
struct Status {
  std::int32_t cufile = 0;
  std::int32_t cuda = 0;
};

/// Numbers of CUfileOpError are above it; what reads and writes return is below its negative.
inline constexpr std::int32_t kFirstError = 5000;
inline constexpr std::int32_t kAlreadyOpen = 5026;  ///< CU_FILE_DRIVER_ALREADY_OPEN

/// CUfileDescr_t
struct Descriptor {
  std::int32_t type = 1;  ///< CU_FILE_HANDLE_TYPE_OPAQUE_FD
  union {
    int descriptor;
    void* handle = nullptr;
  };
  const void* operations = nullptr;
};
static_assert(sizeof(Descriptor) == 24);

/// CUfileDrvProps_t
struct Properties {
  std::uint32_t driver_major = 0, driver_minor = 0;  ///< of nvidia-fs; both 0: it is not loaded
  std::size_t poll_threshold = 0, max_direct_io_kib = 0;
  std::uint32_t status_flags = 0, control_flags = 0;
  std::uint32_t features = 0;              ///< CUfileFeatureFlags, a bit each
  std::uint32_t max_device_cache_kib = 0;  ///< bounce buffers on the GPU
  std::uint32_t per_buffer_cache_kib = 0;
  std::uint32_t max_pinned_kib = 0;  ///< of the GPU's memory
  std::uint32_t max_batch = 0, batch_timeout_ms = 0;
  std::uint32_t room[16] = {};  ///< what later versions may add
};
static_assert(offsetof(Properties, features) == 32);

inline constexpr std::uint32_t kFeaturePeerToPeer = 1U << 4;  ///< CU_FILE_P2P_SUPPORTED

using Handle = void*;

using DriverOpen = Status();
using DriverClose = Status();
using DriverGetProperties = Status(Properties*);
using HandleRegister = Status(Handle*, Descriptor*);
using HandleDeregister = void(Handle);
using BufRegister = Status(const void*, std::size_t, int);
using BufDeregister = Status(const void*);
/// Handle, registered base (or any address), bytes, offset in the file, offset from the base. -1:
/// errno says why; below -kFirstError: a CUfileOpError.
using Read = ssize_t(Handle, void*, std::size_t, off_t, off_t);
using Write = ssize_t(Handle, const void*, std::size_t, off_t, off_t);
using GetVersion = Status(int*);

}  // namespace shardplan::validator::cufile
