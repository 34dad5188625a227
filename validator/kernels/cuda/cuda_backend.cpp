// The device itself: context, memory, streams, copies. The operations are in cuda_operations.cpp.
#include "kernels/cuda/cuda_backend.h"

#include <cublasLt.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "kernels/cuda.h"
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/launchers.h"

namespace shardplan::validator::cuda {
namespace {

struct Memory {
  std::int64_t free = 0;
  std::int64_t total = 0;
};

Memory memory_now() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

/// "13.0" of CUDA's 13000.
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

CudaBackend::CudaBackend(int device) : device_(device) {
  check(cudaSetDevice(device), "cudaSetDevice");
  check(cudaFree(nullptr), "the CUDA context");
  Memory before = memory_now();
  // The GPU is meant to be ours alone, so that what is in use by now is the context.
  overheads_.push_back({"CUDA context", Category::cuda_context, before.total - before.free});
  const auto note = [&](const char* name) {
    const Memory now = memory_now();
    overheads_.push_back({name, Category::other, before.free - now.free});
    before = now;
  };
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  make_stream(Stream::compute, least);
  // Collectives go first when both streams have work: others wait for them.
  make_stream(Stream::communication, greatest);
  launch_.stream = stream(Stream::compute);
  note("CUDA streams");
  linear_ = std::make_unique<Linear>();
  fp8_ = std::make_unique<Fp8Products>(linear_->handle(), device);
  note("cuBLAS handle");
  if (auto cudnn = make_cudnn_attention()) {
    attentions_.push_back(std::move(cudnn));
    note("cuDNN handle");
  }
  attentions_.push_back(make_flash_attention());
  attentions_.push_back(make_simple_attention());
}

CudaBackend::~CudaBackend() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream(Stream::compute));
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  for (void* block : blocks_) cudaFree(block);
  for (const cudaStream_t s : streams_)
    if (s != nullptr) cudaStreamDestroy(s);
}

void CudaBackend::make_stream(Stream stream, int priority) {
  check(cudaStreamCreateWithPriority(&streams_[static_cast<std::size_t>(stream)],
                                     cudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority");
}

DeviceInfo CudaBackend::info() const {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
  int driver = 0;
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return {.name = properties.name,
          .capacity_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
          .versions = {{"cuda driver", cuda_version(driver)},
                       {"cuda", cuda_version(runtime)},
                       {"cublas", std::to_string(cublasLtGetVersion())},
                       {"attention", attentions_.front()->name()}}};
}

void CudaBackend::attend() {
  check(cudaSetDevice(device_), "cudaSetDevice");
}

std::int64_t CudaBackend::available_bytes() const {
  return memory_now().free;
}

std::int64_t CudaBackend::used_bytes() const {
  const Memory now = memory_now();
  return now.total - now.free;
}

std::uintptr_t CudaBackend::allocate(std::int64_t bytes) {
  void* block = nullptr;
  const cudaError_t error = cudaMalloc(&block, static_cast<std::size_t>(bytes));
  if (error != cudaSuccess) {
    cudaGetLastError();  // the error is handled: later calls must not see it
    throw DeviceError("the GPU has no block of " + std::to_string(bytes) + " bytes; " +
                      std::to_string(available_bytes()) + " are free");
  }
  blocks_.push_back(block);
  return reinterpret_cast<std::uintptr_t>(block);
}

std::int64_t CudaBackend::workspace_bytes(const StepShapes& shapes) const {
  return cuda_workspace_bytes(shapes);
}

void CudaBackend::use_workspace(const Tensor& workspace) {
  launch_.workspace = workspace;
}

Event CudaBackend::new_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  events_.push_back(event);
  return static_cast<Event>(events_.size() - 1);
}

void CudaBackend::record(Event event, Stream on) {
  check(cudaEventRecord(events_[static_cast<std::size_t>(event)], stream(on)), "cudaEventRecord");
}

void CudaBackend::wait(Stream on, Event event) {
  check(cudaStreamWaitEvent(stream(on), events_[static_cast<std::size_t>(event)]),
        "cudaStreamWaitEvent");
}

double CudaBackend::seconds_between(Event first, Event second) {
  const cudaEvent_t last = events_[static_cast<std::size_t>(second)];
  check(cudaEventSynchronize(last), "cudaEventSynchronize");
  float milliseconds = 0.0F;
  check(cudaEventElapsedTime(&milliseconds, events_[static_cast<std::size_t>(first)], last),
        "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

template <typename Query, typename Block>
void CudaBackend::wait_until(Query&& query, Block&& block) {
  if (!watcher_) {
    check(block(), "waiting for the GPU");
    return;
  }
  // A collective whose peer is gone never ends: look at the watcher while waiting.
  constexpr auto kPause = std::chrono::microseconds(20);
  for (;;) {
    const cudaError_t state = query();
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) check(state, "waiting for the GPU");
    watcher_();
    std::this_thread::sleep_for(kPause);
  }
}

void CudaBackend::wait_for(Stream on) {
  wait_until([&] { return cudaStreamQuery(stream(on)); },
             [&] { return cudaStreamSynchronize(stream(on)); });
}

void CudaBackend::await(Event event) {
  const cudaEvent_t awaited = events_[static_cast<std::size_t>(event)];
  wait_until([&] { return cudaEventQuery(awaited); },
             [&] { return cudaEventSynchronize(awaited); });
}

void CudaBackend::synchronize() {
  wait_for(Stream::compute);
  wait_for(Stream::communication);
  if (stream(Stream::to_host) == nullptr) return;
  wait_for(Stream::to_host);
  wait_for(Stream::to_device);
}

void CudaBackend::pin(std::span<std::byte> memory) {
  if (stream(Stream::to_host) == nullptr) {  // a run that copies nothing has no such streams
    make_stream(Stream::to_host, 0);
    make_stream(Stream::to_device, 0);
  }
  const cudaError_t error = cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterDefault);
  if (error == cudaSuccess) return;
  cudaGetLastError();  // the error is handled: later calls must not see it
  throw DeviceError("the driver does not pin " + std::to_string(memory.size()) +
                    " bytes of the host's memory: " + cudaGetErrorString(error));
}

void CudaBackend::unpin(std::span<std::byte> memory) noexcept {
  cudaDeviceSynchronize();
  cudaHostUnregister(memory.data());
}

void CudaBackend::fetch(const Tensor& to, const Tensor& from) {
  check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(from.bytes()),
                        cudaMemcpyDeviceToHost, stream(Stream::to_host)),
        "copying from the GPU");
}

void CudaBackend::send(const Tensor& to, const Tensor& from) {
  check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(from.bytes()),
                        cudaMemcpyHostToDevice, stream(Stream::to_device)),
        "copying to the GPU");
}

void CudaBackend::upload(const Tensor& to, std::span<const std::byte> from) {
  check(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyHostToDevice,
                        stream(Stream::compute)),
        "copying to the GPU");
}

void CudaBackend::download(std::span<std::byte> to, const Tensor& from) {
  wait_for(Stream::compute);
  const cudaStream_t compute = stream(Stream::compute);
  check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDeviceToHost, compute),
        "copying from the GPU");
  check(cudaStreamSynchronize(compute), "copying from the GPU");
}

void CudaBackend::copy(const Tensor& to, const Tensor& from) {
  check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(to.bytes()),
                        cudaMemcpyDeviceToDevice, stream(Stream::compute)),
        "copying on the GPU");
}

void CudaBackend::zero(const Tensor& x) {
  check(cudaMemsetAsync(x.data(), 0, static_cast<std::size_t>(x.bytes()), stream(Stream::compute)),
        "clearing memory of the GPU");
}

Attention& CudaBackend::attention_for(DType dtype, const Heads& heads,
                                      const OtherKeys& others) const {
  for (const auto& attention : attentions_) {
    if (attention->supports(dtype, heads, others)) return *attention;
  }
  throw DeviceError("attention: no kernel for heads of " + std::to_string(heads.head_dim) +
                    " elements");
}

}  // namespace shardplan::validator::cuda

namespace shardplan::validator {

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver, or no GPU: not an error
    return 0;
  }
  return count;
}

std::int64_t cuda_workspace_bytes(const StepShapes& shapes) {
  using namespace cuda;
  const std::int64_t widest = std::max(
      {shapes.hidden, shapes.inner, shapes.heads.packed_width(), shapes.padded_vocabulary});
  std::int64_t bytes = std::max({Linear::kWorkspace, norm_workspace(shapes.hidden),
                                 bias_workspace(widest), sums_workspace()});
  if (shapes.heads.query_heads > 0) {
    bytes = std::max({bytes, embedding_workspace(shapes.rows, shapes.hidden),
                      head_norm_workspace(shapes.heads.head_dim), attention_workspace(shapes.heads),
                      cudnn_attention_workspace(shapes.dtype, shapes.heads)});
  }
  return round_up(bytes, 512);
}

std::unique_ptr<Backend> make_cuda_backend(int device) {
  return std::make_unique<cuda::CudaBackend>(device);
}

}  // namespace shardplan::validator
