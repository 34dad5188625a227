// Connections of every rank's process to those after and before it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/star.h"
#include "device/communicator.h"

namespace shardplan::validator {

class Ring {
 public:
  /// Every rank of `star` makes its own at the same time.
  explicit Ring(const Star& star);

  /// As Communicator::exchange, of host memory. Throws PeerFailure.
  void exchange(std::span<const Parcel> out, std::span<const Parcel> in) const;
  void shut() const noexcept;

 private:
  /// To one neighbour.
  struct Link {
    int peer = 0;
    std::unique_ptr<Star> pair;
    const Socket& socket() const { return pair->to(1 - pair->rank()); }
  };
  void open(const Star& star, int first);

  std::vector<Link> links_;
};

}  // namespace shardplan::validator
