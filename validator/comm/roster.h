// The processes of a run and which ranks each has, as all of them agree on it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/star.h"
#include "json/document.h"

namespace shardplan::validator {

struct Member {
  int first_rank = 0, ranks = 1;
  std::string node;  ///< the name of its machine
};

struct Roster {
  int mine = 0;  ///< this process's place among `members`
  std::vector<Member> members;

  int world() const;
  /// The place of the process that has `rank`.
  int member_of(int rank) const;
  const std::string& node_of(int rank) const {
    return members[static_cast<std::size_t>(member_of(rank))].node;
  }
};

/// One frame of text, of any length. Both throw PeerFailure.
void send_frame(const Socket& socket, const Json& frame);
Json receive_frame(const Socket& socket);

/// What every process of a run learns when it joins.
struct RollCall {
  Roster roster;
  Json gift;  ///< of the first process
};

/// Every process calls it at the same time, `star` being of processes. `job` is the same text for
/// the same job; `gift` is used of the first one. Throws InputError for a process that runs another
/// job, on all.
RollCall call_roll(const Star& star, const Member& mine, const std::string& job, const Json& gift);

}  // namespace shardplan::validator
