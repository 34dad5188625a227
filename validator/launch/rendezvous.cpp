#include "launch/rendezvous.h"

#include "comm/processes.h"
#include "kernels/host/host_backend.h"

namespace shardplan::validator {

void share_bytes(const Environment& e, std::span<std::byte> bytes) {
  const Star star(e.address, e.port, e.rank, e.world);
  if (e.rank != 0) return star.to(0).receive(bytes);
  for (int r = 1; r < e.world; ++r) star.to(r).send(bytes);
}

MakeRank host_process_rank(const Environment& e) {
  return [e](int) {
    return RankDevice{make_host_backend(), make_process_communicator(std::make_unique<Star>(
                                               e.address, e.port, e.rank, e.world))};
  };
}

}  // namespace shardplan::validator
