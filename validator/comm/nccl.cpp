// Collectives through NCCL, on the communication stream of a CUDA back end.
//
// A rank that has gone leaves the others in a kernel that never ends. So each collective lies
// between two events, and whoever waits for the stream (CudaBackend::watch) looks at them: one that
// began long ago and has not ended is given up, with PeerFailure.
#include "comm/nccl.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "comm/sole_rank.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_check.h"

namespace shardplan::validator {
namespace {

using Clock = std::chrono::steady_clock;
/// NCCL starts a collective within some 20 µs: sleeping for that long would cost the step more.
constexpr auto kSpin = std::chrono::milliseconds(2);
constexpr auto kPause = std::chrono::milliseconds(1);

/// Of a failure that NCCL says no more of than that CUDA failed: often it had no room for buffers.
std::string memory_left(ncclResult_t result) {
  std::size_t left = 0, all = 0;
  if (result != ncclUnhandledCudaError || cudaMemGetInfo(&left, &all) != cudaSuccess) return "";
  return "; " + format_bytes(static_cast<std::int64_t>(left)) + " of the GPU's " +
         format_bytes(static_cast<std::int64_t>(all)) + " are free";
}

void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const std::string text =
      std::string(call) + ": " + ncclGetErrorString(result) + memory_left(result);
  if (result == ncclRemoteError) throw PeerFailure(text);
  throw DeviceError(text);
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i8:
      return ncclInt8;
    case DType::i64:
      return ncclInt64;
    default:
      throw DeviceError("NCCL has no such element type");
  }
}

/// A collective under way: the stream reached it at `begin` and left it at `end`.
struct InFlight {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  bool begun = false;
  Clock::time_point since;  ///< when it was first seen to have begun
};

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(cuda::CudaBackend& backend, const NcclId& id, int rank, int size,
                   Patience patience)
      : backend_(backend), patience_(patience), rank_(rank), size_(size) {
    const std::int64_t before = backend.used_bytes();
    ncclUniqueId unique{};
    static_assert(sizeof(unique) == sizeof(id));
    std::memcpy(&unique, id.data(), sizeof(unique));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // calls return at once, so that a missing peer cannot hold us
    check(ncclCommInitRankConfig(&comm_, size, unique, rank, &config), "ncclCommInitRankConfig");
    await("waiting for the other ranks");
    barrier_word_ = backend.allocate(sizeof(float));
    barrier();  // the first collective sets up connections: they belong to the overhead
    overhead_ = backend.used_bytes() - before;
    backend_.watch([this] { look_for_dead_peers(); });
  }

  /// A group of `whole`'s ranks.
  NcclCommunicator(NcclCommunicator& whole, std::span<const int> members)
      : backend_(whole.backend_),
        patience_(whole.patience_),
        whole_(&whole),
        rank_(static_cast<int>(std::find(members.begin(), members.end(), whole.rank_) -
                               members.begin())),
        size_(static_cast<int>(members.size())) {
    const std::int64_t before = backend_.used_bytes();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    check(ncclCommSplit(whole.comm_, members.front(), rank_, &comm_, &config), "ncclCommSplit");
    whole.await("waiting for the ranks of a group");
    await("waiting for the ranks of a group");
    barrier_word_ = whole.barrier_word_;
    barrier();
    overhead_ = backend_.used_bytes() - before;
    whole.adopt(*this);
  }

  ~NcclCommunicator() override {
    if (whole_ == nullptr) backend_.watch({});
    if (whole_ != nullptr) whole_->disown(*this);
    for (const InFlight& flight : flights_) release(flight);
    for (const cudaEvent_t event : spare_) cudaEventDestroy(event);
    if (!aborted_) ncclCommDestroy(comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::int64_t overhead_bytes() const override { return overhead_; }

  void all_reduce(const Tensor& x) override {
    launch("ncclAllReduce", [&](cudaStream_t stream) {
      return ncclAllReduce(x.data(), x.data(), count_of(x), type_of(x.dtype), ncclSum, comm_,
                           stream);
    });
  }

  void reduce_scatter(const Tensor& shard, const Tensor& full) override {
    launch("ncclReduceScatter", [&](cudaStream_t stream) {
      return ncclReduceScatter(full.data(), shard.data(), count_of(shard), type_of(shard.dtype),
                               ncclSum, comm_, stream);
    });
  }

  void all_gather(const Tensor& full, const Tensor& shard) override {
    launch("ncclAllGather", [&](cudaStream_t stream) {
      return ncclAllGather(shard.data(), full.data(), count_of(shard), type_of(shard.dtype), comm_,
                           stream);
    });
  }

  void broadcast(const Tensor& x, int root) override {
    launch("ncclBroadcast", [&](cudaStream_t stream) {
      return ncclBroadcast(x.data(), x.data(), count_of(x), type_of(x.dtype), root, comm_, stream);
    });
  }

  void connect_all() override {
    // The first messages set up connections: they belong to the overhead.
    const std::int64_t before = backend_.used_bytes();
    const std::uintptr_t words = backend_.allocate(2 * size_ * static_cast<int>(sizeof(float)));
    const Tensor out{words, DType::f32, Shape{size_}};
    all_to_all({words + static_cast<std::uintptr_t>(out.bytes()), DType::f32, Shape{size_}}, out,
               1);
    barrier();
    overhead_ += backend_.used_bytes() - before;
  }

  void all_to_all(const Tensor& to, const Tensor& from, std::int64_t blocks) override {
    const std::int64_t parts = blocks * size_, part = from.numel() / parts;
    launch("ncclGroupEnd", [&](cudaStream_t stream) {
      check(ncclGroupStart(), "ncclGroupStart");
      for (std::int64_t i = 0; i < parts; ++i) {
        const int peer = static_cast<int>(i % size_);
        const Tensor out = from.slice(i * part, part), in = to.slice(i * part, part);
        check(ncclSend(out.data(), count_of(out), type_of(out.dtype), peer, comm_, stream),
              "ncclSend");
        check(ncclRecv(in.data(), count_of(in), type_of(in.dtype), peer, comm_, stream),
              "ncclRecv");
      }
      return ncclGroupEnd();
    });
  }

  void connect_neighbours() override {
    // The first messages set up connections: they belong to the overhead.
    const std::int64_t before = backend_.used_bytes();
    const std::uintptr_t words = backend_.allocate(4 * sizeof(float));
    const auto word = [&](std::uintptr_t i) {
      return Tensor{words + i * sizeof(float), DType::f32, Shape{1}};
    };
    const int next = (rank_ + 1) % size_, previous = (rank_ + size_ - 1) % size_;
    const std::array<Parcel, 2> out{{{next, word(0)}, {previous, word(1)}}};
    const std::array<Parcel, 2> in{{{previous, word(2)}, {next, word(3)}}};
    exchange(out, in);
    barrier();
    overhead_ += backend_.used_bytes() - before;
  }

  void exchange(std::span<const Parcel> out, std::span<const Parcel> in) override {
    launch("ncclGroupEnd", [&](cudaStream_t stream) {
      check(ncclGroupStart(), "ncclGroupStart");
      for (const Parcel& p : out)
        check(ncclSend(p.tensor.data(), count_of(p.tensor), type_of(p.tensor.dtype), p.peer, comm_,
                       stream),
              "ncclSend");
      for (const Parcel& p : in)
        check(ncclRecv(p.tensor.data(), count_of(p.tensor), type_of(p.tensor.dtype), p.peer, comm_,
                       stream),
              "ncclRecv");
      return ncclGroupEnd();
    });
  }

  std::unique_ptr<Communicator> group(std::span<const int> members) override {
    return std::make_unique<NcclCommunicator>(*this, members);
  }

  void barrier() override {
    all_reduce(Tensor{barrier_word_, DType::f32, Shape{1}});
    backend_.synchronize();
  }

  void abort() noexcept override {
    if (aborted_.exchange(true)) return;
    ncclCommAbort(comm_);
    const std::lock_guard lock(groups_mutex_);
    for (NcclCommunicator* group : groups_) group->abort();
  }

 private:
  static std::size_t count_of(const Tensor& x) { return static_cast<std::size_t>(x.numel()); }

  static void release(const InFlight& flight) {
    cudaEventDestroy(flight.begin);
    cudaEventDestroy(flight.end);
  }

  /// A communicator that does not block answers "in progress" until a call has taken effect.
  void await(const char* what) {
    const auto begin = Clock::now();
    ncclResult_t state = ncclInProgress;
    for (;;) {
      check(ncclCommGetAsyncError(comm_, &state), what);
      check(state, what);
      if (state == ncclSuccess) return;
      const auto waited = Clock::now() - begin;
      if (waited > patience_.silence) give_up(what);
      if (waited > kSpin) std::this_thread::sleep_for(kPause);
    }
  }

  template <class Call>
  void launch(const char* name, Call&& call) {
    if (aborted_) throw PeerFailure("the run was aborted");
    retire();
    const cudaStream_t stream = backend_.stream(Stream::communication);
    InFlight flight{.begin = take_event(), .end = take_event()};
    cuda::check(cudaEventRecord(flight.begin, stream), "cudaEventRecord");
    const ncclResult_t result = call(stream);
    check(result, name);
    if (result == ncclInProgress) await(name);
    cuda::check(cudaEventRecord(flight.end, stream), "cudaEventRecord");
    flights_.push_back(flight);
  }

  cudaEvent_t take_event() {
    if (spare_.empty()) {
      cudaEvent_t event = nullptr;
      cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
      return event;
    }
    const cudaEvent_t event = spare_.back();
    spare_.pop_back();
    return event;
  }

  /// Forgets the collectives that have ended.
  void retire() {
    while (!flights_.empty() && cudaEventQuery(flights_.front().end) == cudaSuccess) {
      spare_.push_back(flights_.front().begin);
      spare_.push_back(flights_.front().end);
      flights_.pop_front();
    }
    cudaGetLastError();  // "not ready" is no error
  }

  void adopt(NcclCommunicator& group) {
    const std::lock_guard lock(groups_mutex_);
    groups_.push_back(&group);
    if (aborted_) group.abort();
  }
  void disown(NcclCommunicator& group) {
    const std::lock_guard lock(groups_mutex_);
    std::erase(groups_, &group);
  }

  void look_for_dead_peers() {
    for (NcclCommunicator* group : groups_) group->look_for_dead_peers();
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
    check(state, "a collective");
    retire();
    if (flights_.empty()) return;
    InFlight& oldest = flights_.front();
    if (!oldest.begun) {
      oldest.begun = cudaEventQuery(oldest.begin) == cudaSuccess;
      oldest.since = Clock::now();
      cudaGetLastError();  // "not ready" is no error
    } else if (Clock::now() - oldest.since > patience_.silence) {
      give_up("a collective");
    }
  }

  [[noreturn]] void give_up(const char* what) {
    abort();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience_.silence);
    throw PeerFailure(std::string(what) + ": another rank has not answered for " +
                      std::to_string(seconds.count()) + " s");
  }

  cuda::CudaBackend& backend_;
  Patience patience_;
  NcclCommunicator* whole_ = nullptr;  ///< of which this is a group
  int rank_;
  int size_;
  ncclComm_t comm_ = nullptr;
  std::uintptr_t barrier_word_ = 0;
  std::int64_t overhead_ = 0;
  std::atomic<bool> aborted_ = false;
  std::deque<InFlight> flights_;
  std::vector<cudaEvent_t> spare_;
  std::mutex groups_mutex_;
  std::vector<NcclCommunicator*> groups_;  ///< alive; changed by this rank's thread alone
};

}  // namespace

NcclId new_nccl_id() {
  ncclUniqueId unique{};
  check(ncclGetUniqueId(&unique), "ncclGetUniqueId");
  NcclId id{};
  static_assert(sizeof(unique) == sizeof(id));
  std::memcpy(id.data(), &unique, sizeof(unique));
  return id;
}

std::unique_ptr<Communicator> make_nccl_communicator(Backend& backend, const NcclId& id, int rank,
                                                     int size, Patience patience) {
  if (size == 1) return make_sole_communicator(backend);
  return std::make_unique<NcclCommunicator>(dynamic_cast<cuda::CudaBackend&>(backend), id, rank,
                                            size, patience);
}

}  // namespace shardplan::validator
