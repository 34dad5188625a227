// How the processes of a run find each other.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "comm/lookout.h"
#include "launch/environment.h"
#include "launch/ranks.h"

namespace shardplan::validator {

/// The processes of a run that have met.
struct Rendezvous {
  std::shared_ptr<Lookout> lookout;
  Json gift;  ///< of the first process
};

/// Every process of the run calls it. `job`: as call_roll's; `make_gift` is called by the first
/// process. Throws PeerFailure when they do not meet in time, InputError when they do not agree.
Rendezvous meet(const Environment& environment, const std::string& job, Patience patience,
                const std::function<Json()>& make_gift);

/// The processes meet, and their ranks, on the host, are to exchange through sockets.
struct HostRanks {
  std::shared_ptr<Lookout> lookout;
  MakeRank make;
};
HostRanks host_process_ranks(const Environment& environment, const std::string& job,
                             Patience patience);

}  // namespace shardplan::validator
