#include "cli/place.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "comm/gpu_memory.h"
#include "comm/nccl.h"
#include "comm/threads.h"
#include "device/errors.h"
#include "kernels/cuda.h"
#include "launch/environment.h"
#include "launch/rendezvous.h"

namespace shardplan::validator {
namespace {

void check_world(const Environment& e, int world, const std::string& file) {
  if (e.world != world)
    throw InputError(
        {.file = file,
         .key = "cluster",
         .message = fmt::format("{} started {} ranks, the job has {}", e.launcher, e.world, world),
         .expected = "as many ranks as the cluster has GPUs"});
}

/// All ranks on the one GPU that is there, as threads of this process.
Placement place_on_one_gpu(int world) {
  Placement p{
      .count = world, .world = world, .workspace = cuda_workspace_bytes, .ranks_per_device = world};
  p.make = [meeting = make_meeting(world)](int rank) {
    RankDevice device{make_cuda_backend(0), nullptr};
    device.communicator = make_thread_communicator(meeting, rank, gpu_memory(*device.backend));
    return device;
  };
  return p;
}

Placement place_on_gpus(const std::optional<Environment>& e, int world) {
  const int there = cuda_device_count();
  if (there == 1 && world > 1 && !e) return place_on_one_gpu(world);
  const int wanted = e ? e->local_rank + 1 : world;
  if (there < wanted)
    throw DeviceError(fmt::format("the job asks for {} on this host, and there {}{}",
                                  wanted == 1 ? "a GPU" : fmt::format("{} GPUs", wanted),
                                  there == 0   ? "is none"
                                  : there == 1 ? "is 1"
                                               : fmt::format("are {}", there),
                                  there == 0        ? "; --device host runs it on the CPU"
                                  : there == 1 && e ? "; without a launcher, all ranks share it"
                                                    : ""));
  Placement p{.count = world, .world = world, .workspace = cuda_workspace_bytes};
  NcclId id{};
  if (e) {
    p.first_rank = e->rank;
    p.count = 1;
    if (e->rank == 0) id = new_nccl_id();
    share_bytes(*e, id);
  } else {
    id = new_nccl_id();
  }
  if (p.first_rank == 0 && !cuda_has_cudnn())
    fmt::print(
        stderr,
        "shardplan-validate: built without cuDNN: attention runs on our own kernels, with 9 to "
        "21 % fewer tokens/s.\nshardplan-validate: cmake says what it lacks; "
        "docs/evidence/kernels.md has the measurement.\n");
  p.make = [id, world, local = e ? e->local_rank : -1](int rank) {
    RankDevice device{make_cuda_backend(local >= 0 ? local : rank), nullptr};
    device.communicator = make_nccl_communicator(*device.backend, id, rank, world);
    return device;
  };
  return p;
}

Placement place_on_host(const std::optional<Environment>& e, int world, const EngineJob& job) {
  Placement p{.count = world,
              .world = world,
              .make = host_ranks(world, 0),
              .workspace = dry_workspace(job)};
  if (e) {
    p.first_rank = e->rank;
    p.count = 1;
    p.make = host_process_rank(*e);
  }
  return p;
}

}  // namespace

Placement place(const EngineJob& job) {
  const int world = static_cast<int>(job.plan().cluster.world());
  const std::optional<Environment> e = read_environment(process_variable);
  if (e) check_world(*e, world, job.file);
  Placement p = job.on_host() ? place_on_host(e, world, job) : place_on_gpus(e, world);
  p.host_ranks = e ? e->local_world : world;
  p.host_index = e ? e->local_rank : 0;
  return p;
}

WorkspaceRule dry_workspace(const EngineJob& job) {
  if (job.on_host()) return [](const StepShapes&) { return std::int64_t{0}; };
  return cuda_workspace_bytes;
}

}  // namespace shardplan::validator
