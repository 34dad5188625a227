#include "comm/gpu_memory.h"

#include <cuda_runtime_api.h>

#include <array>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/launchers.h"

namespace shardplan::validator {
namespace {

class GpuMemory final : public CommonMemory {
 public:
  explicit GpuMemory(cuda::CudaBackend& backend) : backend_(backend) {
    for (cudaEvent_t& event : events_)
      cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~GpuMemory() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }

  std::unique_ptr<CommonMemory> again() const override {
    return std::make_unique<GpuMemory>(backend_);
  }

  void copy(const Tensor& to, const Tensor& from) override {
    cuda::check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(to.bytes()),
                                cudaMemcpyDeviceToDevice, stream()),
                "copying between ranks of a GPU");
  }
  void sum(const Tensor& to, std::span<const Tensor> parts) override {
    cuda::rank_sum(stream(), to, parts);
  }

  Mark mark(Point point) override {
    const cudaEvent_t event = events_[static_cast<std::size_t>(point)];
    cuda::check(cudaEventRecord(event, stream()), "cudaEventRecord");
    return reinterpret_cast<Mark>(event);
  }
  void wait(Mark mark) override {
    cuda::check(cudaStreamWaitEvent(stream(), reinterpret_cast<cudaEvent_t>(mark)),
                "cudaStreamWaitEvent");
  }
  void finish() override { backend_.synchronize(); }

 private:
  cudaStream_t stream() const { return backend_.stream(Stream::communication); }

  cuda::CudaBackend& backend_;
  std::array<cudaEvent_t, kPoints> events_{};
};

}  // namespace

std::unique_ptr<CommonMemory> gpu_memory(Backend& backend) {
  return std::make_unique<GpuMemory>(dynamic_cast<cuda::CudaBackend&>(backend));
}

}  // namespace shardplan::validator
