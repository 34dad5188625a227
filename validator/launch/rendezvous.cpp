#include "launch/rendezvous.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "comm/processes.h"
#include "kernels/host/host_backend.h"

namespace shardplan::validator {

Rendezvous meet(const Environment& e, const std::string& job, Patience patience,
                const std::function<Json()>& make_gift) {
  auto star = std::make_unique<Star>(e.address, e.port, e.process, e.first_ranks, patience);
  const Json gift = e.process == 0 ? make_gift() : Json();
  RollCall call = call_roll(*star, {e.rank, e.count, e.node}, job, gift);
  return {std::make_shared<Lookout>(std::move(star), std::move(call.roster), patience),
          std::move(call.gift)};
}

HostRanks host_process_ranks(const Environment& e, const std::string& job, Patience patience) {
  constexpr int kAnyPort = 0;
  const std::shared_ptr<const Listener> door =
      e.process == 0 ? std::make_shared<const Listener>(kAnyPort, e.world) : nullptr;
  const Rendezvous met = meet(e, job, patience, [&] { return Json(door->port()); });
  const auto make = [e, door, patience, port = met.gift.get<int>()](int rank) {
    auto star = rank == 0 ? std::make_unique<Star>(*door, e.world, patience)
                          : std::make_unique<Star>(e.address, port, rank, e.world, patience);
    return RankDevice{make_host_backend(), make_process_communicator(std::move(star))};
  };
  return {met.lookout, make};
}

}  // namespace shardplan::validator
