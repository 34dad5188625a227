// Collectives over all GPUs of the host, a thread per GPU as shardplan-validate runs them, and
// among ranks that share one GPU. The ranks' numbers are small integers, so that sums are exact in
// every type.
#include <fmt/core.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include "comm/gpu_memory.h"
#include "comm/nccl.h"
#include "comm/threads.h"
#include "kernel_check/checks.h"
#include "kernel_check/elements.h"
#include "kernels/cuda.h"

namespace shardplan::validator {
namespace {

constexpr std::int64_t kPart = 3000;  // elements of a rank's shard

struct Rank {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Communicator> communicator;
};
using MakeRank = std::function<Rank(int rank)>;

/// Writes numbers that collectives read, and looks at what they have made of them.
class Numbers {
 public:
  explicit Numbers(Backend& device)
      : device_(device), filled_(device.new_event()), done_(device.new_event()) {}

  void fill(const Tensor& x, double value) {
    device_.fill(x, static_cast<float>(value));
    device_.record(filled_, Stream::compute);
    device_.wait(Stream::communication, filled_);
  }
  bool all_are(const Tensor& x, double value) {
    device_.record(done_, Stream::communication);
    device_.wait(Stream::compute, done_);
    std::vector<std::byte> bytes(static_cast<std::size_t>(x.bytes()));
    device_.download(bytes, x);
    for (const double element : decode(bytes, x.dtype)) {
      if (element != value) return false;
    }
    return true;
  }

 private:
  Backend& device_;
  Event filled_;
  Event done_;
};

/// Each rank sends every other a part of its numbers, in one block and in four.
bool all_to_all_is_right(Backend& device, Communicator& ranks, Numbers& numbers,
                         const Tensor& full) {
  const int size = ranks.size();
  const Tensor got{device.allocate(full.bytes()), full.dtype, full.shape};
  ranks.connect_all();
  for (const std::int64_t blocks : {1, 4}) {
    numbers.fill(full, ranks.rank() + 1);
    ranks.all_to_all(got, full, blocks);
    const std::int64_t part = kPart / blocks;
    for (std::int64_t i = 0; i < blocks * size; ++i)
      if (!numbers.all_are(got.slice(i * part, part), static_cast<int>(i % size) + 1)) return false;
  }
  return true;
}

/// Each rank sends the next its numbers, twice, and the one before it half of them.
bool exchange_is_right(Backend& device, Communicator& ranks, Numbers& numbers, const Tensor& full) {
  const int rank = ranks.rank(), size = ranks.size();
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  const Tensor mine = full.slice(rank * kPart, kPart);
  const Tensor got{device.allocate(3 * kPart * size_of(full.dtype)), full.dtype, Shape{3 * kPart}};
  const auto third = [&](std::int64_t i) { return got.slice(i * kPart, kPart); };
  ranks.connect_neighbours();
  numbers.fill(full, rank + 1);
  const Parcel out[] = {{next, mine}, {next, mine}, {previous, mine}};
  const Parcel in[] = {{previous, third(0)}, {previous, third(1)}, {next, third(2)}};
  ranks.exchange(out, in);
  return numbers.all_are(third(0), previous + 1) && numbers.all_are(third(1), previous + 1) &&
         numbers.all_are(third(2), next + 1);
}

/// The first wrong result of one rank, or "".
std::string check_collectives_of(Backend* device, Communicator* ranks, DType dtype) {
  const int rank = ranks->rank(), size = ranks->size();
  const std::int64_t count = kPart * size;
  const Tensor full{device->allocate(count * size_of(dtype)), dtype, Shape{count}};
  const Tensor mine = full.slice(rank * kPart, kPart);
  Numbers numbers(*device);
  const double total = size * (size + 1) / 2.0;
  numbers.fill(full, rank + 1);
  ranks->all_reduce(full);
  if (!numbers.all_are(full, total)) return "all-reduce";
  numbers.fill(full, rank + 1);
  ranks->reduce_scatter(mine, full);
  if (!numbers.all_are(mine, total)) return "reduce-scatter";
  numbers.fill(full, rank + 1);
  ranks->all_gather(full, mine);
  for (int other = 0; other < size; ++other) {
    if (!numbers.all_are(full.slice(other * kPart, kPart), other + 1)) return "all-gather";
  }
  numbers.fill(full, rank + 1);
  ranks->broadcast(full, size - 1);
  if (!numbers.all_are(full, size)) return "broadcast";
  if (size > 1) {
    if (!all_to_all_is_right(*device, *ranks, numbers, full)) return "all-to-all";
    if (!exchange_is_right(*device, *ranks, numbers, full)) return "exchange";
  }
  ranks->barrier();
  return "";
}

/// All ranks together, then ranks with even and those with odd numbers among themselves.
std::string check_rank(const MakeRank& make, int rank, DType dtype) {
  const Rank made = make(rank);
  const int size = made.communicator->size();
  std::string wrong = check_collectives_of(made.backend.get(), made.communicator.get(), dtype);
  if (!wrong.empty() || size < 4) return wrong;
  std::vector<int> members;
  for (int other = rank % 2; other < size; other += 2) members.push_back(other);
  const auto group = made.communicator->group(members);
  wrong = check_collectives_of(made.backend.get(), group.get(), dtype);
  made.communicator->barrier();
  return wrong.empty() ? wrong : wrong + " of a group";
}

MakeRank gpu_each(int size) {
  return [id = new_nccl_id(), size](int rank) {
    Rank made{make_cuda_backend(rank), nullptr};
    made.communicator = make_nccl_communicator(*made.backend, id, rank, size);
    return made;
  };
}

MakeRank one_gpu(int size) {
  return [meeting = make_meeting(size)](int rank) {
    Rank made{make_cuda_backend(0), nullptr};
    made.communicator = make_thread_communicator(meeting, rank, gpu_memory(*made.backend));
    return made;
  };
}

/// How many ranks were wrong.
int check_world(const char* where, const MakeRank& make, int size, DType dtype) {
  std::vector<std::string> wrong(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      std::string& mine = wrong[static_cast<std::size_t>(rank)];
      try {
        mine = check_rank(make, rank, dtype);
      } catch (const std::exception& error) {
        mine = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int failed = 0;
  for (int rank = 0; rank < size; ++rank) {
    const std::string& what = wrong[static_cast<std::size_t>(rank)];
    fmt::print("collectives on {}, {}, rank {} of {}: {}\n", where, shardplan::name_of(dtype), rank,
               size, what.empty() ? "right" : "WRONG: " + what);
    if (!what.empty()) ++failed;
  }
  return failed;
}

}  // namespace

int check_collectives() {
  const int gpus = cuda_device_count();
  int failed = 0;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    failed += check_world("a GPU each", gpu_each(gpus), gpus, dtype);
    for (const int ranks : {2, 4}) failed += check_world("one GPU", one_gpu(ranks), ranks, dtype);
  }
  return failed;
}

}  // namespace shardplan::validator
