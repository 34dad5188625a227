# The CUDA back end of the validator: built where a toolkit with NCCL is found, left out elsewhere.
# Sets SHARDPLAN_CUDA_FOUND, SHARDPLAN_CUDNN_FOUND and the target shardplan_cuda_libraries.
option(SHARDPLAN_CUDA "Build the CUDA back end if a toolkit is found" ON)
option(SHARDPLAN_FETCH_CUDNN_FRONTEND
  "Download cuDNN's front end (headers) where cuDNN is found without it" ON)
set(SHARDPLAN_CUDA_FOUND OFF)
set(SHARDPLAN_CUDNN_FOUND OFF)

if(SHARDPLAN_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
endif()
if(CMAKE_CUDA_COMPILER)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)  # H100, H200; the kernels need 80 at least
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  include(Cudnn)
  if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    set(SHARDPLAN_CUDA_FOUND ON)
  endif()
endif()

if(SHARDPLAN_CUDA_FOUND)
  # CMake 3.25 does not know how to ask nvcc for C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
  if(CCACHE_PROGRAM)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()

  add_library(shardplan_cuda_libraries INTERFACE)
  target_include_directories(shardplan_cuda_libraries SYSTEM INTERFACE
    ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_INCLUDE_DIR})
  target_link_libraries(shardplan_cuda_libraries INTERFACE
    CUDA::cudart CUDA::cublasLt ${NCCL_LIBRARY})
  if(CUDNN_FRONTEND_INCLUDE_DIR AND CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY)
    set(SHARDPLAN_CUDNN_FOUND ON)
    target_include_directories(shardplan_cuda_libraries SYSTEM INTERFACE
      ${CUDNN_FRONTEND_INCLUDE_DIR} ${CUDNN_INCLUDE_DIR})
    # The frontend compiles kernels of its own for other operations.
    target_link_libraries(shardplan_cuda_libraries INTERFACE ${CUDNN_LIBRARY} CUDA::nvrtc)
  endif()
endif()

add_feature_info(CUDA SHARDPLAN_CUDA_FOUND
  "the validator's GPU back end (needs nvcc, cuBLASLt and NCCL)")
if(SHARDPLAN_CUDA_FOUND)
  add_feature_info(cuDNN SHARDPLAN_CUDNN_FOUND
    "its attention through cuDNN; our own kernels have 9 to 21 % fewer tokens/s${SHARDPLAN_CUDNN_LACKS}")
endif()
