#include "cli/place.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/diagnostic.h"
#include "comm/gpu_memory.h"
#include "comm/nccl.h"
#include "comm/threads.h"
#include "device/errors.h"
#include "kernels/cuda.h"
#include "launch/environment.h"
#include "launch/hosts.h"
#include "launch/rendezvous.h"

namespace shardplan::validator {
namespace {

void check_world(const Environment& e, int world, const std::string& file) {
  if (e.world != world)
    throw InputError(
        {.file = file,
         .key = "cluster",
         .message = fmt::format("{} {} {} ranks, the job has {}", e.launcher,
                                e.launcher == "--hosts" ? "names" : "started", e.world, world),
         .expected = "as many ranks as the cluster has GPUs"});
}

/// What must be the same on all processes: two jobs that differ would wait for each other.
std::string fingerprint(const EngineJob& job) {
  Json text = job.document;
  text.erase("cluster");  // how it is written; how many ranks there are is compared anyway
  return text.dump();
}

/// All ranks on the one GPU that is there, as threads of this process.
Placement place_on_one_gpu(int world, const Patience& patience) {
  Placement p{
      .count = world, .world = world, .workspace = cuda_workspace_bytes, .ranks_per_device = world};
  p.make = [meeting = make_meeting(world, patience.silence)](int rank) {
    RankDevice device{make_cuda_backend(0), nullptr};
    device.communicator = make_thread_communicator(meeting, rank, gpu_memory(*device.backend));
    return device;
  };
  return p;
}

void check_gpus(const std::optional<Environment>& e, int there, int world) {
  const int wanted = e ? e->local_rank + e->count : world;
  if (there >= wanted) return;
  throw DeviceError(fmt::format("the job asks for {} on this host, and there {}{}",
                                wanted == 1 ? "a GPU" : fmt::format("{} GPUs", wanted),
                                there == 0   ? "is none"
                                : there == 1 ? "is 1"
                                             : fmt::format("are {}", there),
                                there == 0        ? "; --device host runs it on the CPU"
                                : there == 1 && e ? "; without a launcher, all ranks share it"
                                                  : ""));
}

Placement place_on_gpus(const std::optional<Environment>& e, int world, const EngineJob& job,
                        const Patience& patience) {
  const int there = cuda_device_count();
  if (there == 1 && world > 1 && !e) return place_on_one_gpu(world, patience);
  check_gpus(e, there, world);
  Placement p{.count = world, .world = world, .workspace = cuda_workspace_bytes};
  NcclId id{};
  if (e) {
    p.first_rank = e->rank;
    p.count = e->count;
    const Rendezvous met = meet(*e, fingerprint(job), patience, [] {
      Json bytes = Json::array();
      for (const std::byte b : new_nccl_id()) bytes.push_back(static_cast<int>(b));
      return bytes;
    });
    p.lookout = met.lookout;
    for (std::size_t i = 0; i < id.size(); ++i)
      id[i] = static_cast<std::byte>(met.gift.at(i).get<int>());
  } else {
    id = new_nccl_id();
  }
  if (p.first_rank == 0 && !cuda_has_cudnn())
    fmt::print(
        stderr,
        "shardplan-validate: built without cuDNN: attention runs on our own kernels, with 9 to "
        "21 % fewer tokens/s.\nshardplan-validate: cmake says what it lacks; "
        "docs/evidence/kernels.md has the measurement.\n");
  p.make = [id, world, patience, first = e ? e->rank - e->local_rank : 0](int rank) {
    RankDevice device{make_cuda_backend(rank - first), nullptr};
    device.communicator = make_nccl_communicator(*device.backend, id, rank, world, patience);
    return device;
  };
  return p;
}

Placement place_on_host(const std::optional<Environment>& e, int world, const EngineJob& job,
                        const Patience& patience) {
  Placement p{.count = world, .world = world, .workspace = dry_workspace(job)};
  if (!e) {
    p.make = host_ranks(world, 0, patience);
    return p;
  }
  HostRanks ranks = host_process_ranks(*e, fingerprint(job), patience);
  p.first_rank = e->rank;
  p.count = e->count;
  p.make = std::move(ranks.make);
  p.lookout = std::move(ranks.lookout);
  return p;
}

std::optional<Environment> environment(const EngineJob& job, const Company& company) {
  const std::optional<Environment> launched = read_environment(process_variable);
  if (company.hosts.empty()) return launched;
  if (launched)
    throw InputError({.file = "<command line>",
                      .key = "--hosts",
                      .message = fmt::format("{} has started this process", launched->launcher),
                      .expected = "a launcher or a list of hosts"});
  const auto port = process_variable("MASTER_PORT");
  const auto hosts = read_hosts(company.hosts, static_cast<int>(job.plan().cluster.gpus_per_node));
  return environment_of(hosts, company.node, read_port(port));
}

}  // namespace

Placement place(const EngineJob& job, const Company& company) {
  const int world = static_cast<int>(job.plan().cluster.world());
  const std::optional<Environment> e = environment(job, company);
  if (e) check_world(*e, world, job.file);
  Placement p = job.on_host() ? place_on_host(e, world, job, company.patience)
                              : place_on_gpus(e, world, job, company.patience);
  p.host_ranks = e ? e->local_world : world;
  p.host_index = e ? e->local_rank : 0;
  return p;
}

WorkspaceRule dry_workspace(const EngineJob& job) {
  if (job.on_host()) return [](const StepShapes&) { return std::int64_t{0}; };
  return cuda_workspace_bytes;
}

}  // namespace shardplan::validator
