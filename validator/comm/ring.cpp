#include "comm/ring.h"

#include <array>
#include <exception>
#include <future>
#include <utility>
#include <vector>

namespace shardplan::validator {
namespace {

std::span<std::byte> data(const Tensor& x) {
  return {static_cast<std::byte*>(x.data()), static_cast<std::size_t>(x.bytes())};
}

}  // namespace

/// A rank is in one pair at a time: those that begin at an even rank come first, and the pair that
/// closes a ring of an odd number of ranks comes last.
Ring::Ring(const Star& star) {
  const int ranks = star.world();
  if (ranks == 1) return;
  for (const int parity : {0, 1}) {
    int mine = star.rank() % 2 == parity ? star.rank() : star.rank() - 1;
    if (mine < 0) mine = ranks - 1;  // the pair that closes the ring
    const bool closes = mine == ranks - 1;
    open(star, closes && (ranks == 2 || ranks % 2 == 1) ? -1 : mine);
  }
  if (ranks % 2 == 0) return;
  const bool end = star.rank() == 0 || star.rank() == ranks - 1;
  open(star, end ? ranks - 1 : -1);
}

/// The pair of rank `first` and the next one; -1: this rank is in none.
void Ring::open(const Star& star, int first) {
  const int next = (first + 1) % star.world();
  if (first < 0) {
    star.group(std::array{star.rank()});
    return;
  }
  links_.push_back({first == star.rank() ? next : first, star.group(std::array{first, next})});
}

void Ring::exchange(std::span<const Parcel> out, std::span<const Parcel> in) const {
  const Waiting waiting;
  std::vector<std::future<void>> ways;  // all at once: no order among peers is promised
  const auto start = [&](auto&& body) {
    ways.push_back(std::async(std::launch::async, std::forward<decltype(body)>(body)));
  };
  for (const Link& link : links_) {
    start([&link, out] {
      for (const Parcel& p : out)
        if (p.peer == link.peer) link.socket().send(data(p.tensor));
    });
    start([&link, in] {
      for (const Parcel& p : in)
        if (p.peer == link.peer) link.socket().receive(data(p.tensor));
    });
  }
  std::exception_ptr failure;
  for (std::future<void>& way : ways) {
    try {
      way.get();
    } catch (...) {
      // The first names who is to blame: shutting the others ends them.
      if (failure) continue;
      shut();
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

void Ring::shut() const noexcept {
  for (const Link& link : links_) link.pair->shut();
}

}  // namespace shardplan::validator
